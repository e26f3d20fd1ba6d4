// explain_svg.h - draws one step of each of several runs as an animated SVG.

#ifndef LOCKSTEP_EXPLAIN_SVG_H
#define LOCKSTEP_EXPLAIN_SVG_H

#include "lockstep/explain_trace.h"

// Writes an animated SVG at `path`, and replaces an old file. Each worker has a
// row for computing, and below it a row for sending and receiving. All runs are
// uncovered from left to right on one clock. 0, or -1 after fail().
int explain_svg(const struct panel *panels, int n, const char *path);

#endif
