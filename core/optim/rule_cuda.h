// rule_cuda.h - the kernels of the update, as plain functions.

#pragma once

#include "optim/rule.h"

#ifdef __cplusplus
extern "C" {
#endif

// The result of rule_cuda_decide(). The update reads it on the device, so that
// no kernel waits for the host.
struct rule_verdict {
    float norm;  // of the unscaled gradient
    float scale; // factor that unscales and clips
    int skip;
};

// sums[b] = sum of squares of block b of g[0..n). The functions here only queue
// their kernels.
void rule_cuda_squares(void *queue, double *sums, const float *g, size_t n);

// Adds nblocks sums as segment_norm() does, and writes the verdict.
void rule_cuda_decide(void *queue, struct rule_verdict *v, const double *sums,
                      size_t nblocks, float scale, float clip);

// Updates p, its slots and its copy (unless that is NULL) from g in one pass,
// as optim_update(). Does nothing if v->skip is set. The gradient's scale is
// that of v. `decay`: ndecay ranges on the device, ascending.
void rule_cuda_update(void *queue, uint32_t kind, float *p, float *const *slots,
                      const float *g, size_t n, struct optim_rates rates,
                      const struct optim_range *decay, uint32_t ndecay,
                      const struct rule_verdict *v,
                      const struct half_copy *copy);

#ifdef __cplusplus
}
#endif
