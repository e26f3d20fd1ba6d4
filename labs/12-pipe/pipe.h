// pipe.h - lab 12: the function that pipe.c defines.

#ifndef LABS_PIPE_H
#define LABS_PIPE_H

#include "labs/lab.h"

// A model in stages, each on a worker of its own. Every one of `micro`
// micro-batches goes forward through stages 0, 1 .. stages-1, and then backward
// through stages-1 .. 1, 0.
struct pipe {
    int stages, micro;
    const double *forward, *backward; // seconds of a micro-batch, by stage
};

struct work {
    bool backward; // else forward
    int micro;     // of micro-batch 0 .. micro-1
};

// The piece of work number i (from 0) that stage `stage` does. False where
// there are no more. A stage waits until the piece can be done.
bool pipe_work(const struct pipe *p, int stage, int i, struct work *w);

#endif
