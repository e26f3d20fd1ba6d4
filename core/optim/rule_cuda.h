// rule_cuda.h - the kernels of the update, as plain functions.

#ifndef OPTIM_RULE_CUDA_H
#define OPTIM_RULE_CUDA_H

#include "optim/rule.h"

#ifdef __cplusplus
extern "C" {
#endif

// The update reads these on the device, so that no kernel waits for the host.
struct rule_verdict {
    float norm;  // of the unscaled gradient
    float scale; // unscale and clip, in one factor
    int skip;
};

// The numbers that do not depend on the gradient.
struct rule_rates {
    float lr, decay; // decay: weight_decay of ranges that decay
    float beta1, beta2, correct1, correct2, eps;
    float momentum;
};

// sums[b] = sum of squares of block b of g[0..n).
void rule_cuda_squares(void *queue, double *sums, const float *g, size_t n);

// Adds nblocks sums as segment_norm() does, and writes the verdict.
void rule_cuda_decide(void *queue, struct rule_verdict *v, const double *sums,
                      size_t nblocks, float scale, float clip);

// One pass over p, its slots and g, and over p's copy unless it is NULL. Does
// nothing if v->skip is set. `decay`: ndecay ranges on the device, ascending.
void rule_cuda_update(void *queue, uint32_t kind, float *p, float *const *slots,
                      const float *g, size_t n, struct rule_rates rates,
                      const struct optim_range *decay, uint32_t ndecay,
                      const struct rule_verdict *v,
                      const struct half_copy *copy);

#ifdef __cplusplus
}
#endif

#endif
