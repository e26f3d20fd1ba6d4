// stale.h - lab 7: what stale.c defines.

#ifndef LABS_STALE_H
#define LABS_STALE_H

#include "labs/lab.h"

struct job {
    size_t n;  // parameters, and gradients of each push
    int bound; // how many pushes a worker may be ahead; -1: as many as it likes
    float lr;
};

// On rank l->workers, until all workers have left. A message of n floats is a
// push: the gradients of its sender, which move p at once,
//
//     p[i] -= lr / (float)workers * g[i]
//
// The clock of a worker counts its pushes. A push is answered with p once its
// worker's clock is at most `bound` above the lowest clock of all workers that
// have not left, and not later. A message of 0 bytes: its sender leaves.
int lab_serve(struct lab *l, const struct job *job, float *p);

// On a worker: a push, and p becomes the answer.
int lab_exchange(struct lab *l, const struct job *job, const float *g,
                 float *p);

// On a worker, after its last push.
int lab_leave(struct lab *l);

#endif
