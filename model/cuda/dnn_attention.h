// dnn_attention.h - attention by cuDNN's fused kernels (attention=cudnn), for
// one shape, forward and backward.
//
// Tensors, layouts and statistics are those of attention.cu, so a caller may
// use either of the two for each call. cuDNN is only for 16-bit formats, and
// for attention without dropout: it would drop other probabilities than
// attention.cu and the CPU do.

#pragma once

#include "model/kernels.h"

struct device;
struct dnn;
struct dnn_attention;

// Builds the plans of forward and, with `train`, of backward for the shape, and
// allocates their workspace on the device. Returns 0, or -1 after fail() if the
// library is missing or too old, or has no plan for this GPU and shape. Close
// sets *a to NULL.
int dnn_attention_open(struct dnn_attention **a, struct device *d,
                       enum dtype format, const struct attention *shape,
                       bool train);
void dnn_attention_close(struct dnn_attention **a);

// Builds only the plans, with a library that the caller has opened and keeps
// open. Forward and backward use the same workspace: *workspace becomes the
// larger of the two sizes, in bytes. Returns 0, or -1 after fail().
int dnn_attention_plan(struct dnn_attention **a, const struct dnn *dnn,
                       enum dtype format, const struct attention *shape,
                       bool train, size_t *workspace);

// True if the plans are for this shape.
bool dnn_attention_fits(const struct dnn_attention *a, enum dtype format,
                        const struct attention *shape);

// Runs each plan once on tensors of the shape and waits, so that a plan which
// the GPU cannot run is known before training. The tensors are those of the
// functions below; their contents are lost. Without training dqkv, row_sum and
// dout are NULL. Returns 0, or -1 after fail().
int dnn_attention_try(const struct dnn_attention *a, void *dqkv, float *row_sum,
                      void *dout, void *out, float *lse, void *qkv);

// The same as cuda_attention() and cuda_attention_backward(), on the compute
// queue. A failure ends the process with a line in the log.
void dnn_attention_forward(const struct dnn_attention *a, void *out, float *lse,
                           const void *qkv);
void dnn_attention_backward(const struct dnn_attention *a, void *dqkv,
                            float *row_sum, const void *dout, const void *out,
                            const float *lse, const void *qkv);
