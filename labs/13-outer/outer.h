// outer.h - lab 13: the functions that outer.c defines.

#ifndef LABS_OUTER_H
#define LABS_OUTER_H

#include "labs/lab.h"

// A training job, the same on all workers.
struct outer {
    size_t n;      // parameters
    int fragments; // fragment f: elements n*f/fragments up to the next one's
    int every;     // steps from one exchange of a fragment to the next
    int overlap;   // steps during which an exchange travels; < every
    int steps;     // inner steps of the whole training
    float lr, momentum; // of the outer step
    // Given: does inner step number `step` (from 1) of this worker, which
    // changes its parameters p.
    void (*inner)(const struct outer *o, int step, float *p);
};

// The outer step of n parameters. mean: the mean of all workers' parameters.
// start: what all workers had after the outer step before. It becomes the new
// start. velocity is 0 before the first outer step.
//
//     d        := start - mean, the pseudo-gradient
//     velocity := momentum velocity + d
//     start    := start - lr (d + momentum velocity)
void outer_step(float lr, float momentum, const float *mean, float *start,
                float *velocity, size_t n);

// Does all inner and outer steps of a worker. p: o->n parameters, the same on
// all workers when it begins. Returns 0 or -1.
//
// After inner step s (from 1), fragment f is due if
//
//     s % every == every * (f + 1) / fragments % every
//
// Then each worker sends its part of p to all others. `overlap` inner steps
// later, or after the last inner step if that comes first, it adds all workers'
// parts in fp32, in the order of the workers. It divides the sum by their
// number, and does the outer step. Then the fragment of p becomes the start.
int outer_train(struct lab *l, const struct outer *o, float *p);

#endif
