// kernels_cuda.h - the operations of GPT-2 on a GPU that are not matrix
// products.
//
// A call puts its operation into a queue (a cudaStream_t), which runs it after
// the operations before it. Pointers are to device memory. The number of
// channels is a multiple of 8, so every row can be loaded 16 bytes at a time.

#pragma once

#include "base/half.h"
#include "model/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_MAX_HEAD = 128,      // channels of a head
    CUDA_MAX_CHANNELS = 6112, // norm.cu: 2 rows of fp32 and 256 bytes: 48 KiB
    CUDA_MAX_GRID = 65535,    // of a grid's y and z: heads, sequences
    CUDA_PARTIALS = 256       // most blocks whose sums are added up in order
};

// Floats of scratch that norm_backward() needs for C channels. They are enough
// for cuda_sum_rows() with up to 8 C columns.
static inline size_t cuda_partial(int C)
{
    return (size_t)CUDA_PARTIALS * 2 * (size_t)C;
}

// The rows of a batch, sorted by token. For each i < kinds, token[i] is the
// token of the rows order[k] with start[i] <= k < start[i + 1].
struct cuda_tokens {
    int32_t *order, *start, *token;
    int kinds;
};

// model_cuda.c: sorts by token, stably, those of rows 0..n-1 of x whose token
// is `here`. Fills order (n), start (n + 1) and token (n), as in struct
// cuda_tokens; tokens count from the first one here. `scratch` is as many
// numbers of scratch as there are words here, zero before and after. Returns
// the number of kinds.
int cuda_tokens_sort(int32_t *order, int32_t *start, int32_t *token,
                     int32_t *scratch, const int32_t *x, int n,
                     struct words here);

// current.c: what the table's operations know of the model for which the
// calling thread works, from cuda_begin() to cuda_end(); *m is borrowed.
struct cuda_model {
    struct device *dev;
    void *queue; // its compute queue
    enum dtype format;
    bool tf32;     // products of attention in fp32 round their factors to TF32
    size_t stride; // between rows of logits, in numbers: a multiple of 4
    struct cuda_tokens tokens; // of the pass, for embed_backward()
    struct dnn_attention *dnn; // for a step's shape; NULL: not used
};
void cuda_begin(const struct cuda_model *m);
void cuda_end(void);
const struct cuda_model *cuda_current(void);

// On this device attention's backward needs a->scratch of (B, NH, T) floats, or
// of (B, NH, of_queries) for a block. With dlogits, the gradient replaces the
// logits; after the V-th number it is 0. Operations that are NULL are not
// needed here.
extern const struct kernels kernels_cuda;

// ---- functions of the table

// embed.cu
void cuda_embed(void *out, const void *wte, const void *wpe, const int32_t *x,
                size_t rows, int T, int C, const struct mask *mask);
void cuda_embed_words(float *out, const void *wte, const int32_t *x,
                      struct words here, size_t rows, int C);
void cuda_embed_places(void *out, const float *words, const void *wpe,
                       size_t rows, int T, int C, const struct mask *mask);
void cuda_embed_backward(float *dwte, float *dwpe, const void *dout,
                         const int32_t *x, struct words here, size_t rows,
                         int T, int C, bool add, const struct mask *mask);

// norm.cu
void cuda_norm(void *sum, void *out, float *mean, float *rstd, const void *res,
               const void *branch, const void *branch_bias, const void *weight,
               const void *bias, size_t rows, int C, const struct mask *mask);
void cuda_norm_backward(void *dres, bool add_dres, void *out, float *dweight,
                        float *dbias, bool add, const void *dout,
                        const void *sum, const float *mean, const float *rstd,
                        const void *weight, const void *bias, size_t rows,
                        int C, float *partial);

// attention.cu, attention_backward.cu
void cuda_attention(void *out, float *lse, const void *qkv,
                    const struct attention *a);
void cuda_attention_backward(void *dqkv, const void *dout, const void *out,
                             const float *lse, const void *qkv,
                             const struct attention *a);
void cuda_attention_block(float *out, float *lse, const void *qkv,
                          const void *kv, const struct attention_runs *r,
                          const struct attention *a);
void cuda_attention_block_backward(float *dq, float *dkv, const void *dout,
                                   const void *out, const float *lse,
                                   const void *qkv, const void *kv,
                                   const struct attention_runs *r,
                                   const struct attention *a);

// loss.cu
void cuda_loss(float *loss, void *dlogits, float *logits, const int32_t *y,
               size_t rows, int V, float factor);
void cuda_loss_parts(struct loss_part *parts, float *logits, const int32_t *y,
                     struct words here, size_t rows);
void cuda_loss_joined(float *loss, void *dlogits, float *logits,
                      const struct loss_part *parts, int slices, int slice,
                      const int32_t *y, struct words here, size_t rows,
                      float factor);
void cuda_mean(float *mean, const float *v, size_t n);

// vector.cu
void cuda_mask_rows(void *out, const void *in, size_t rows, int C,
                    const struct mask *mask);
void cuda_settle(float *grad, const float *in, size_t n, bool add);
void cuda_add_parts(float *out, const float *parts, int count, size_t n,
                    bool add);

// ---- what an epilogue does, if cuBLASLt has none for it (product_cuda.c)

// gelu.cu: cuda_gelu_backward(): d *= gelu'(in). cuda_bias(): out += bias;
// unless pre is NULL, pre = that sum, and out = gelu(pre).
void cuda_gelu_backward(void *queue, enum dtype format, void *d, const void *in,
                        size_t n);
void cuda_bias(void *queue, enum dtype format, void *out, void *pre,
               const void *bias, size_t rows, int C);
// vector.cu
void cuda_sum_rows(void *queue, enum dtype format, float *out, const void *in,
                   size_t rows, int C, bool add, float *partial);

#ifdef __cplusplus
}
#endif
