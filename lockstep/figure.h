// figure.h - draw one figure: plots/NAME.gp with the tables of a folder.

#ifndef LOCKSTEP_FIGURE_H
#define LOCKSTEP_FIGURE_H

#include <stdio.h>

// The .gp files lie in $LOCKSTEP_PLOTS, or with the programs (base/share.h).

// -1 after fail() if a name of this list (by spaces or commas) is no figure;
// "none" is a list of none.
int figures_check(const char *figures);

// Draw OUT/NAME.svg and OUT/NAME.png from the files in `data`; `size` is
// "WIDTHxHEIGHT" in pixels, "" the figure's own. 0, or -1 after fail().
int figure_draw(const char *name, const char *data, const char *out,
                const char *size);

// -1 after fail() unless `size` is two numbers of pixels, 200x100 or more.
int figure_check_size(const char *size);

// Print a line a figure: its name, and what it shows.
void figures_list(FILE *f);

#endif
