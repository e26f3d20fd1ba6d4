// kernels_cuda.h - the operations of GPT-2 on a GPU that are not matrix
// products.
//
// The operations, shapes and letters are those of model/kernels.h. A call
// puts its operation into a queue (a cudaStream_t), which runs it after the
// operations before it. Pointers are to device memory. The number of channels
// is a multiple of 8, so every row can be loaded 16 bytes at a time.

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

// Floats of scratch that cuda_norm_backward() needs for C channels. They are
// enough for cuda_sum_rows() with up to 8 C columns.
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

// tokens_cuda.c: sorts by token, stably, those of rows 0..n-1 of x whose token
// is `here`. Fills order (n), start (n + 1) and token (n), as in struct
// cuda_tokens; tokens count from the first one here. `scratch` is as many
// numbers of scratch as there are words here, zero before and after. Returns
// the number of kinds.
int cuda_tokens_sort(int32_t *order, int32_t *start, int32_t *token,
                     int32_t *scratch, const int32_t *x, int n,
                     struct words here);

// embed.cu
void cuda_embed(void *queue, enum dtype format, void *out, const void *wte,
                const void *wpe, const int32_t *x, size_t rows, int T, int C,
                const struct mask *mask);
// A slice's rows of the tokens, or zeros; and the places added to the sum over
// slices, with the mask.
void cuda_embed_words(void *queue, enum dtype format, float *out,
                      const void *wte, const int32_t *x, struct words here,
                      size_t rows, int C);
void cuda_embed_places(void *queue, enum dtype format, void *out,
                       const float *words, const void *wpe, size_t rows, int T,
                       int C, const struct mask *mask);
void cuda_embed_backward(void *queue, enum dtype format, float *dwte,
                         float *dwpe, const void *dout,
                         const struct cuda_tokens *tokens, int B, int T, int C,
                         bool add, const struct mask *mask);

// norm.cu
void cuda_norm(void *queue, enum dtype format, void *sum, void *out,
               float *mean, float *rstd, const void *res, const void *branch,
               const void *weight, const void *bias, size_t rows, int C,
               const struct mask *mask);
void cuda_norm_backward(void *queue, enum dtype format, void *dres,
                        bool add_dres, void *out, float *dweight, float *dbias,
                        bool add, const void *dout, const void *sum,
                        const float *mean, const float *rstd,
                        const void *weight, const void *bias, size_t rows,
                        int C, float *partial);

// gelu.cu: these do an epilogue's work if cuBLASLt has no such epilogue.
// cuda_gelu_backward(): d *= gelu'(in). cuda_bias(): out += bias.
void cuda_gelu_backward(void *queue, enum dtype format, void *d, const void *in,
                        size_t n);
void cuda_bias(void *queue, enum dtype format, void *out, const void *bias,
               size_t rows, int C);
// pre = out + bias; out = gelu(pre).
void cuda_bias_gelu(void *queue, enum dtype format, void *out, void *pre,
                    const void *bias, size_t rows, int C);

// attention.cu, attention_backward.cu: `tf32` lets fp32 products round their
// factors to TF32. Backward's row_sum is (B, NH, T) floats of scratch.
struct cuda_attention {
    int B, T, C, NH;
    enum dtype format;
    bool tf32;
    struct mask mask;
    int head, heads; // of a slice: its first head, and the model's number of
                     // heads; else 0
};
void cuda_attention(void *queue, void *out, float *lse, const void *qkv,
                    const struct cuda_attention *a);
void cuda_attention_backward(void *queue, void *dqkv, float *row_sum,
                             const void *dout, const void *out,
                             const float *lse, const void *qkv,
                             const struct cuda_attention *a);
// The same for a block of divided sequences, as in kernels.h. row_sum is (B,
// NH, of_queries) floats.
void cuda_attention_block(void *queue, float *out, float *lse, const void *qkv,
                          const void *kv, const struct attention_runs *r,
                          const struct cuda_attention *a);
void cuda_attention_block_backward(void *queue, float *dq, float *dkv,
                                   float *row_sum, const void *dout,
                                   const void *out, const float *lse,
                                   const void *qkv, const void *kv,
                                   const struct attention_runs *r,
                                   const struct cuda_attention *a);

// loss.cu: loss[r] = the cross-entropy of row r of logits. Rows are `stride`
// numbers apart, a multiple of 4. With `gradient`, factor * the gradient
// replaces the logits; after the V-th number it is 0.
void cuda_loss(void *queue, enum dtype format, float *loss, void *logits,
               size_t stride, const int32_t *y, size_t rows, int V,
               float factor, bool gradient);
// The same for a slice, in two steps, as in kernels.h. `parts` is (slices,
// rows).
void cuda_loss_parts(void *queue, enum dtype format, struct loss_part *parts,
                     const void *logits, size_t stride, const int32_t *y,
                     struct words here, size_t rows);
void cuda_loss_joined(void *queue, enum dtype format, float *loss, void *logits,
                      size_t stride, const struct loss_part *parts, int slices,
                      const int32_t *y, struct words here, size_t rows,
                      float factor, bool gradient);
// *mean = the mean of v[0, n), added in double in a fixed order.
void cuda_mean(void *queue, float *mean, const float *v, size_t n);

// vector.cu
void cuda_sum_rows(void *queue, enum dtype format, float *out, const void *in,
                   size_t rows, int C, bool add, float *partial);
void cuda_mask_rows(void *queue, enum dtype format, void *out, const void *in,
                    size_t rows, int C, const struct mask *mask);
void cuda_settle(void *queue, enum dtype format, float *grad, const float *in,
                 size_t n, bool add);
void cuda_add_parts(void *queue, float *out, const float *parts, int count,
                    size_t n, bool add);

#ifdef __cplusplus
}
#endif
