// state_cuda.h - everything that a model on a GPU holds between open and close.
//
// All tensors lie in one block of device memory, cut up by cuda_state_lay().
// `void *` tensors hold numbers of the model's format. N = B*T rows. What is
// not kept of a layer is computed again, as on the CPU.

#ifndef MODEL_CUDA_STATE_CUDA_H
#define MODEL_CUDA_STATE_CUDA_H

#include "model/cuda/kernels_cuda.h"
#include "model/cuda/product_cuda.h"
#include "model/layers.h"
#include "model/ops.h"

struct cuda_model {
    struct model_job job;
    struct device *dev;
    void *queue; // compute's, as kernels take it
    struct cuda_product *product;
    size_t nparams;
    size_t *off; // of every tensor in the flat vector, and nparams behind them
    char *block; // device memory that everything below lies in

    // The weights that products read: job.params in fp32, else a 16-bit copy.
    void *weights;
    // Where this step's gradients are put: job.grads, but in fp16 a vector of
    // its own, whose numbers pass through fp16 on their way to job.grads.
    float *grads;
    size_t settled; // gradients from here on are in job.grads (fp16)

    struct layer *layers; // L, on the host; without training all the same
    void **gelu;        // L, on the host: (N, 4C) GELU's output, which backward
                        // needs; all are one with recompute or no training
    void *last;         // (N, C) residual stream at the end
    float *mean, *rstd; // (N) of ln_f

    void *norm;    // (N, C)  LayerNorm's output; branch and gradient products
    void *branch;  // (N, C)  a branch before it joins; gradients in backward
    void *dwide;   // (N, 4C) gradient of pre, or of qkv
    void *dres;    // (N, C)  gradient of the residual stream
    void *dbranch; // (N, C)  dres behind dropout's mask; dres itself without
    void *logits;  // (slice, stride); their gradient replaces them there
    float *losses; // (N) loss of every row
    float *mean_loss;
    float *partial; // cuda_partial(4C)
    float *row_sum; // (B, NH, T) of attention's backward
    size_t stride;  // of logits: V, rounded up to whole lines of memory
    int slice;      // rows of logits worked on at a time

    // Tokens and targets on the device, and rows by token; pinned on the host.
    int32_t *x, *y;
    struct cuda_tokens tokens;
    int32_t *host_ints; // x, y, order, start, token: 5 (N + 1)
    int32_t *room;      // of cuda_tokens_sort
    float *host_loss;
    struct device_event loss_known;
};

// Cut the block at `block` (NULL: only count) into m's tensors. Returns bytes.
size_t cuda_state_lay(struct cuda_model *m, char *block);

// tokens_cuda.c: sort rows 0..n-1 by token, stably. `order` takes n numbers,
// `start` n + 1, `token` n; `room` is V + 1 numbers, zero before and after.
// Returns the number of kinds.
int cuda_tokens_sort(int32_t *order, int32_t *start, int32_t *token,
                     int32_t *room, const int32_t *x, int n);

#endif
