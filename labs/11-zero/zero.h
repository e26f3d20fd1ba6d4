// zero.h - lab 11: the function that zero.c defines.

#ifndef LABS_ZERO_H
#define LABS_ZERO_H

#include "labs/lab.h"

#include <math.h>

// A training job, the same on all workers.
struct zero {
    size_t n;    // parameters
    int steps;   // of the whole training
    double clip; // the largest norm of the mean gradient
    // Given: computes the n gradients g of a worker in a step (from 0) at the
    // parameters p.
    void (*gradients)(const struct zero *z, int rank, int step, const float *p,
                      float *g);
    // Given: updates n consecutive parameters p. g: their summed gradients,
    // which it multiplies by `scale`. a, b: their state, n floats each, 0
    // before the first update. number: of the update, from 1.
    void (*update)(float *p, const float *g, float *a, float *b, size_t n,
                   float scale, int number);
};

// The factor by which to multiply the summed gradients of w workers. It makes
// them the mean, clipped to a norm of at most z->clip. squares: the sum of the
// squares of all summed gradients.
static inline float zero_scale(const struct zero *z, double squares, int w)
{
    double norm = sqrt(squares) / w;
    return (float)((norm > z->clip ? z->clip / norm : 1) / w);
}

// Runs all steps, on every worker. p: the n parameters, the same on all
// workers. Of w workers, worker r owns elements n*r/w up to n*(r+1)/w. It sums
// their gradients, holds their state, updates them and sends them to all. A
// step whose sum of squares is not finite changes nothing and does not count as
// an update. Returns 0 or -1.
int zero_train(struct lab *l, const struct zero *z, float *p);

#endif
