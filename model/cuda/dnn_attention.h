// dnn_attention.h - attention by cuDNN's fused kernels (attention=cudnn), for
// one shape, forward and backward.
//
// The same tensors, layouts and statistics as attention.cu, so a caller may use
// either for each call. Never in fp32, and without dropout: cuDNN would drop
// other weights than attention.cu and the CPU do.

#ifndef MODEL_CUDA_DNN_ATTENTION_H
#define MODEL_CUDA_DNN_ATTENTION_H

#include "model/cuda/kernels_cuda.h"

struct device;
struct dnn;
struct dnn_attention;

// Builds both plans for the shape, backward's only with `train`, and allocates
// their workspace on the device. 0, or -1 after fail(): the library is missing
// or too old, or has no plan for this GPU and shape.
int dnn_attention_open(struct dnn_attention **a, struct device *d,
                       const struct cuda_attention *shape, bool train);
void dnn_attention_close(struct dnn_attention **a);

// The plans alone, by a library that the caller has opened and keeps open.
// *workspace := the bytes that the larger needs. 0, or -1 after fail().
int dnn_attention_plan(struct dnn_attention **a, const struct dnn *dnn,
                       const struct cuda_attention *shape, bool train,
                       size_t *workspace);

// True if the plans are for this shape.
bool dnn_attention_fits(const struct dnn_attention *a,
                        const struct cuda_attention *shape);

// As cuda_attention() and cuda_attention_backward(), on the compute queue. A
// failure ends the process with a line in the log.
void dnn_attention_forward(const struct dnn_attention *a, void *out, float *lse,
                           const void *qkv);
void dnn_attention_backward(const struct dnn_attention *a, void *dqkv,
                            float *row_sum, const void *dout, const void *out,
                            const float *lse, const void *qkv);

#endif
