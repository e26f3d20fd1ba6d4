// truth.h - a small model of odd sizes, and its gradients in double precision.

#ifndef TESTS_TRUTH_H
#define TESTS_TRUTH_H

#include "tests/tiny_model.h"

// 5 heads of 7 channels, and 31 words: no number of workers divides them.
enum { ODD_LAYERS = 3 };
extern const struct model_config odd;

// Some gradients of every tensor of `odd`, by finite differences of fourth
// order.
enum { SAMPLES = 6, TENSORS = 2 + MODEL_PER_LAYER * ODD_LAYERS + 2 };
struct truth {
    double loss, slope[TENSORS * SAMPLES];
    size_t at[TENSORS * SAMPLES];
};

// Opens `odd` with ROWS sequences of `tokens` tokens on one thread, with
// weights that 16-bit formats hold exactly; end() closes it.
struct bench begin_odd(enum dtype format, int tokens, bool recompute,
                       float drop);

// The truth of a bench of `odd`. The caller frees it.
struct truth *find_truth(const struct bench *b);

// |grads - truth| / |truth|, of the gradients that the truth has.
double error_of(const float *grads, const struct truth *t);

#endif
