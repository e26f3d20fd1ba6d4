// figure.h - draw one figure: plots/NAME.gp with the tables of a folder.

#ifndef LOCKSTEP_FIGURE_H
#define LOCKSTEP_FIGURE_H

// The folder of the .gp files: $LOCKSTEP_PLOTS, or where this was built from.
const char *figure_plots(void);

// -1 after fail() if a name of this list (by spaces or commas) is no figure.
int figures_check(const char *figures);

// Draw OUT/NAME.svg and OUT/NAME.png from the files in `data`. 0, or -1 after
// fail().
int figure_draw(const char *name, const char *data, const char *out);

#endif
