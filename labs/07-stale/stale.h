// stale.h - lab 7: the functions that stale.c defines.

#ifndef LABS_STALE_H
#define LABS_STALE_H

#include "labs/lab.h"

struct job {
    size_t n;  // parameters, and gradients of each push
    int bound; // how many pushes a worker may be ahead; -1: no bound
    float lr;
};

// Runs on rank l->workers until all workers have left. p: n parameters. A
// message of n floats is a push: its sender's gradients g. They move p at once:
//
//     p[i] -= lr / (float)workers * g[i]
//
// The clock of a worker counts its pushes. The server answers a push with p as
// soon as its sender's clock is at most `bound` above the lowest clock of all
// workers that have not left. A message of 0 bytes says that its sender leaves.
// Returns 0 or -1.
int lab_serve(struct lab *l, const struct job *job, float *p);

// Runs on a worker: pushes g, n floats, and receives the answer in p. Returns 0
// or -1.
int lab_exchange(struct lab *l, const struct job *job, const float *g,
                 float *p);

// Runs on a worker, after its last push. Returns 0 or -1.
int lab_leave(struct lab *l);

#endif
