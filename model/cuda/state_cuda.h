// state_cuda.h - everything that a model on a GPU holds between open and close.
//
// All tensors are in one block of device memory, which cuda_state_layout() lays
// out. A `void *` tensor holds numbers in the model's format. N = B*T rows.
// Backward computes again what forward does not keep of a layer, as on the CPU.

#ifndef MODEL_CUDA_STATE_CUDA_H
#define MODEL_CUDA_STATE_CUDA_H

#include "model/cuda/kernels_cuda.h"
#include "model/cuda/product_cuda.h"
#include "model/layers.h"
#include "model/ops.h"

struct cuda_model {
    struct model_job job;
    struct device *dev;
    void *queue; // the compute queue: a cudaStream_t
    struct cuda_product *product;
    struct dnn_attention *dnn; // for a step's shape; NULL: not used
    size_t nparams;
    size_t *off; // where each tensor begins in the flat vector; then nparams
    char *block; // the device memory of everything below

    // The weights that products read: job.params in fp32, else a 16-bit copy.
    void *weights;
    // Where products write this step's gradients: in fp16 a vector of its own,
    // from which cuda_settle() rounds them to fp16 into job.grads; else
    // job.grads itself.
    float *grads;
    size_t settled; // gradients from here on are in job.grads (fp16)

    struct layer *layers; // (L), on the host; without training all are equal
    void **gelu; // (L), on the host: GELU's output (N, 4C), for backward;
                 // all are equal with recompute or without training
    void *last;  // (N, C) residual stream at the end
    float *mean, *rstd; // (N) of ln_f

    void *norm;   // (N, C)  LayerNorm's output, which products read
    void *branch; // (N, C)  a branch before its addition; gradients in backward
    void *dwide;  // (N, 4C) gradient of pre, or of qkv
    void *dres;   // (N, C)  gradient of the residual stream
    void *dbranch; // (N, C)  dres times dropout's mask; dres without dropout
    void *logits;  // (slice, stride); replaced by their gradient
    float *losses; // (N) loss of every row
    float *mean_loss;
    float *partial; // cuda_partial(C) floats of scratch
    float *row_sum; // (B, NH, T) of attention's backward
    size_t stride;  // of logits: V, rounded up to whole lines of memory
    int slice;      // rows of logits worked on at a time

    // Tokens, targets and the rows by token, on the device and (host_ints) in
    // pinned memory of the host.
    int32_t *x, *y;
    struct cuda_tokens tokens;
    int32_t *host_ints; // x, y, order, start, token: 5 (N + 1)
    int32_t *kinds;     // (V + 1) scratch of cuda_tokens_sort()
    float *host_loss;
    struct device_event loss_known;
};

// Lays out m's tensors in the memory at `block`; if that is NULL, only counts.
// Returns the number of bytes.
size_t cuda_state_layout(struct cuda_model *m, char *block);

// tokens_cuda.c: sorts rows 0..n-1 of x by token, stably. Fills order (n),
// start (n + 1) and token (n), as in struct cuda_tokens. `scratch` is V + 1
// numbers of scratch, zero before and after. Returns the number of kinds.
int cuda_tokens_sort(int32_t *order, int32_t *start, int32_t *token,
                     int32_t *scratch, const int32_t *x, int n);

#endif
