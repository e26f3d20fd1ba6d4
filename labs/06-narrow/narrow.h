// narrow.h - lab 6: the functions that narrow.c defines.

#ifndef LABS_NARROW_H
#define LABS_NARROW_H

#include "labs/lab.h"

#include "base/half.h" // uint16_t f16_from_float(float), f16_to_float(uint16_t)

// v, n floats, becomes the sum of all workers' v, with the same bits on every
// worker. All messages are fp16. Of w workers, worker c owns elements n*c/w up
// to n*(c+1)/w: it adds them for all. Returns 0 or -1.
int lab_exchange(struct lab *l, float *v, size_t n);

// The factor by which the loss is multiplied, so that small gradients do not
// become 0 in fp16.
struct loss_scale {
    float scale; // a power of two, from 1 to 2^24
    int good;    // steps without an overflow since the scale last changed
    int window;  // this many good steps in a row double the scale
};

// One step. g: this worker's n gradients, multiplied by s->scale. *skip becomes
// true, on all workers, if a gradient of any worker is infinite or NaN, or if a
// sum overflows. Else g becomes the mean of all workers' gradients, without the
// scale. *s becomes the scale of the next step: half after a skipped step, but
// at least 1; twice after `window` good steps in a row, but at most 2^24.
// Returns 0 or -1.
int lab_step(struct lab *l, struct loss_scale *s, float *g, size_t n,
             bool *skip);

#endif
