// layered.h - LARS and LAMB: the length of a step in a tensor follows from the
// norm of the tensor. For training with large batches.
//
//     LARS  a = |p| / (|g| + wd |p|);  u = mu u + a (g + wd p);  p = p - lr u
//           (You, Gitman, Ginsburg, "Large Batch Training of Convolutional
//           Networks", 2017; lr contains the paper's trust coefficient, and
//           stands outside the velocity, as in PyTorch's SGD)
//     LAMB  r = m^ / (sqrt(v^) + eps) + wd p;  p = p - lr |p| / |r| r
//           (You et al., "Large Batch Optimization for Deep Learning", ICLR
//           2020; m, v as AdamW's)
//
// A tensor is a range of optim_config.decay, so it is a matrix. All other
// elements (biases, LayerNorms) have a = 1, or |p| / |r| = 1, and no decay. So
// have tensors with a norm of 0.

#pragma once

#include "optim/rule.h"

#include <stdbool.h>

// Whether the rule needs the norms of whole tensors.
bool layered_is(const struct optim_config *c);

// Updates the whole vector of n elements with the gradient scale * grads, and
// in->copy, unless that is NULL. `sums` is scratch: segment_blocks(n) doubles.
// The bits do not depend on the number of threads.
void layered_update(const struct optim_config *c, float *params,
                    float *const *slots, const float *grads, size_t n,
                    const struct rule_in *in, float scale, double *sums);
