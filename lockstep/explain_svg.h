// explain_svg.h - the steps of some runs as a picture that plays by itself.

#ifndef LOCKSTEP_EXPLAIN_SVG_H
#define LOCKSTEP_EXPLAIN_SVG_H

#include "lockstep/explain_trace.h"

// An animated SVG at `path`: what each worker computes, and below it what it
// sends and receives, uncovered from left to right on one clock for all runs.
// 0, or -1 after fail().
int explain_svg(const struct panel *panels, int n, const char *path);

#endif
