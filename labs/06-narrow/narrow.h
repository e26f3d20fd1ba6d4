// narrow.h - lab 6: what narrow.c defines.

#ifndef LABS_NARROW_H
#define LABS_NARROW_H

#include "labs/lab.h"

#include "base/half.h" // uint16_t f16_from_float(float), f16_to_float(uint16_t)

// v, n floats, becomes the sum of all workers' v, on every worker: the same
// bits everywhere. What travels is fp16. Worker c owns elements n*c/w up to
// n*(c+1)/w of w workers: it adds them, for all.
int lab_exchange(struct lab *l, float *v, size_t n);

// The factor by which the loss is multiplied, so that small gradients do not
// become 0 in fp16.
struct loss_scale {
    float scale; // a power of two, from 1 to 2^24
    int good;    // steps in a row without an overflow, since it last changed
    int window;  // so many double the scale
};

// One step. g are this worker's gradients, times s->scale. *skip: on some
// worker one is infinite or NaN, or the sum does not fit. All workers find the
// same. Unless *skip, g becomes the mean of all workers' gradients, without the
// scale. *s becomes the scale of the next step: half after a skipped step, but
// at least 1; twice after `window` good ones in a row, but at most 2^24.
int lab_step(struct lab *l, struct loss_scale *s, float *g, size_t n,
             bool *skip);

#endif
