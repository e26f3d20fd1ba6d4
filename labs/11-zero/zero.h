// zero.h - lab 11: what zero.c defines.

#ifndef LABS_ZERO_H
#define LABS_ZERO_H

#include "labs/lab.h"

#include <math.h>

// What all workers know before they begin.
struct zero {
    size_t n;    // parameters
    int steps;   // to do
    double clip; // the largest norm of the mean gradient
    // Given: the gradients of a worker in a step (from 0), at parameters p.
    void (*gradients)(const struct zero *z, int rank, int step, const float *p,
                      float *g);
    // Given: the rule, on n elements in a row. g: their summed gradients, which
    // it multiplies by `scale`; a, b: their state, 0 at first; number: of the
    // update, from 1.
    void (*update)(float *p, const float *g, float *a, float *b, size_t n,
                   float scale, int number);
};

// The scale of a step of w workers: the mean's, less where the mean is too
// long. `squares`: the sum of the squares of all summed gradients.
static inline float zero_scale(const struct zero *z, double squares, int w)
{
    double norm = sqrt(squares) / w;
    return (float)((norm > z->clip ? z->clip / norm : 1) / w);
}

// All steps, on every worker; p: the parameters, the same on all. Worker r owns
// elements n*r/w up to n*(r+1)/w of w workers. It sums their gradients, holds
// their state and updates them, for all. A step whose squares are not finite
// changes nothing, and has no number. 0 or -1.
int zero_train(struct lab *l, const struct zero *z, float *p);

#endif
