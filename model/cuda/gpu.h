// gpu.h - what only a model on a GPU has.

#pragma once

#include "model/cuda/kernels_cuda.h"
#include "model/cuda/product_cuda.h"
#include "model/state.h"

// Numbers on their way to the device: in pinned memory of the host, until the
// device has copied them.
struct gpu_sent {
    int32_t *host;
    struct device_event copied;
};

struct gpu {
    struct device *dev;
    void *queue; // the compute queue: a cudaStream_t
    bool tf32;
    struct cuda_product *product;
    struct dnn_attention *dnn; // for a step's shape; NULL: not used
    int32_t *x, *y;            // (N) on the device
    struct cuda_tokens tokens; // the rows by token, on the device
    struct gpu_sent sent_x, sent_y, sent_tokens;
    int32_t *kinds; // (words) scratch of cuda_tokens_sort()
    float *host_loss;
    struct device_event loss_known;
};

// kernels_cuda.c: the operations of the model for which the calling thread
// works, from cuda_kernels_begin() to cuda_kernels_end().
extern const struct kernels kernels_cuda;
void cuda_kernels_begin(const struct model *m);
void cuda_kernels_end(void);

// kernels_cuda.c: a model's attention as the functions of attention.cu and
// cuDNN take it.
struct cuda_attention cuda_attention_of(const struct model *m,
                                        const struct attention *a);
