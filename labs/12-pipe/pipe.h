// pipe.h - lab 12: the function that pipe.c defines.

#ifndef LABS_PIPE_H
#define LABS_PIPE_H

#include "labs/lab.h"

// A model in stages, each on a worker of its own. Each of the `micro`
// micro-batches goes forward through stages 0, 1 .. stages-1, and then backward
// through stages-1 .. 1, 0.
struct pipe {
    int stages, micro;
    const double *forward, *backward; // seconds of a micro-batch, by stage
};

// A piece of work: one micro-batch goes forward or backward through a stage.
struct work {
    bool backward; // else forward
    int micro;     // number of the micro-batch, from 0
};

// Writes piece number i of stage `stage` to *w. Returns false if the
// stage has no such piece. The cluster lets a stage wait until a piece's input
// has arrived.
bool pipe_work(const struct pipe *p, int stage, int i, struct work *w);

#endif
