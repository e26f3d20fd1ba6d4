// slices.h - lab 15: the functions that slices.c defines.

#ifndef LABS_SLICES_H
#define LABS_SLICES_H

#include "labs/lab.h"

// One MLP of a model, whose weights are cut into slices. It is the same on all
// workers, but for `own`. Matrices are stored row by row.
//
//     z = x A             x: (rows, width)    A: (width, hidden)
//     h = z where z > 0, else 0
//     y = h B + c         B: (hidden, width)  c: (width)
//
// Each worker has some of the hidden numbers: these columns of A, and these
// rows of B. x, y and c are whole on every worker.
struct mlp {
    size_t rows, width;
    size_t own; // hidden numbers of this worker; may be 0
};

// Deals `units` hidden numbers out to w workers, one after the other. Worker r
// computes speed[r] of them in a second, at least 1. Each unit goes to the
// worker that would be the first to finish all its units, this one included. Of
// several such workers the one with the lowest rank gets it. share[r] becomes
// the number of units of worker r.
void slice_shares(const int *speed, int w, size_t units, size_t *share);

// The join: v, n floats, becomes the sum of all workers' v, with the same bits
// on every worker. Returns 0 or -1, as the next two do.
int lab_exchange(struct lab *l, float *v, size_t n);

// Computes y, (rows, width), and h, (rows, own), this worker's part of the
// hidden numbers, which backward needs. a is (width, own): this worker's
// columns of A. b is (own, width): its rows of B. One join.
int slice_forward(struct lab *l, const struct mlp *m, const float *x,
                  const float *a, const float *b, const float *c, float *h,
                  float *y);

// From dy, (rows, width), the gradient of y, which is whole on every worker,
// computes the gradients dx (rows, width), da (width, own), db (own, width) and
// dc (width). x, a, b and h are those of slice_forward(). One join.
int slice_backward(struct lab *l, const struct mlp *m, const float *x,
                   const float *a, const float *b, const float *h,
                   const float *dy, float *dx, float *da, float *db, float *dc);

#endif
