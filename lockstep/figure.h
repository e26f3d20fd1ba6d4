// figure.h - draws a figure: runs plots/NAME.gp on the tables of a folder.

#ifndef LOCKSTEP_FIGURE_H
#define LOCKSTEP_FIGURE_H

#include <stdio.h>

// The .gp files are in $LOCKSTEP_PLOTS, or in the installation (base/share.h).

// Checks a list of figure names, separated by spaces or commas; "none" is an
// empty list. 0, or -1 after fail() if one of them is no figure.
int figures_check(const char *figures);

// Draws OUT/NAME.svg and OUT/NAME.png from the files in `data`. `size` is
// "WIDTHxHEIGHT" in pixels; "" is the figure's own size. 0, or -1 after fail().
int figure_draw(const char *name, const char *data, const char *out,
                const char *size);

// Checks that `size` is "WIDTHxHEIGHT", 200x100 to 20000x20000 pixels. 0, or -1
// after fail().
int figure_check_size(const char *size);

// Prints one line for each figure: its name and its description.
void figures_list(FILE *f);

#endif
