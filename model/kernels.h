// kernels.h - the operations of GPT-2 that are not matrix products, a table for
// each device.
//
// Tensors are `void *` here because the format varies: fp32, bf16 or fp16
// numbers, row-major. A `float *` is always fp32. Rows are tokens, (B*T).
//
// On the CPU each operation is written once, in plain C, and compiled for every
// storage format and instruction set; kernels_find() picks the table for this
// processor. Every operation runs on all threads of the OpenMP team, and gives
// the same bits for the same number of threads. On a GPU (kernels_cuda.c) an
// operation goes into the compute queue of the model for which the calling
// thread works (struct model_ops, begin()), as PyTorch's go into a thread's
// current stream. Tensors are then in the GPU's memory.

#pragma once

#include "base/half.h"
#include "base/zigzag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Which elements dropout drops. threshold 0: none.
struct mask {
    uint64_t key, row;   // the tensor begins with row `row` of the mask
    uint32_t threshold;  // rate * 2^32
    float keep;          // 1 / (1 - rate)
    struct zigzag place; // of this worker's rows in divided sequences
};

// What attention needs to know about its input.
struct attention {
    int B, T, C, NH;  // T of whole sequences
    struct mask mask; // of the probabilities
    float *scratch;  // CPU: threads * attention_scratch() floats; GPU: (B,NH,T)
    int head, heads; // of a slice: its first head, and the model's number of
                     // heads; else 0
};

// A block of the scores of divided sequences: some queries of this worker, over
// some keys of any worker, of all B sequences. of_queries and of_keys are how
// many tokens of a sequence these workers have. `first`: these queries have no
// result yet.
struct attention_runs {
    struct zigzag_run queries, keys;
    int of_queries, of_keys;
    bool first;
};

// The words whose rows of wte this worker has: all, or a slice's.
struct words {
    int first, n;
};

// Attention works on ATTENTION_STEP queries at a time, and pads tokens to whole
// steps. It pads a head's channels to a multiple of ATTENTION_LANES, or on
// tiles of ATTENTION_DEPTH.
enum { ATTENTION_STEP = 32, ATTENTION_LANES = 16, ATTENTION_DEPTH = 32 };

// A block computes scores for a strip of ATTENTION_STEP queries at a time, and
// only those of the keys that the strip sees. Returns how many keys these are,
// padded, for the strip that begins with query t.
static inline int attention_strip_keys(const struct attention_runs *r, int t)
{
    int ahead = r->queries.first + t - r->keys.first;
    int keys = (ahead + 2 * ATTENTION_STEP - 1) / ATTENTION_STEP;
    int all = (r->keys.n + ATTENTION_STEP - 1) / ATTENTION_STEP;
    return (keys < all ? keys : all) * ATTENTION_STEP;
}

// Floats of scratch that a thread of attention needs: six padded heads, three
// strips of queries, two of scores (attention_block.c). Attention on tiles
// needs less: in fp32 two heads, a strip of queries and two of scores, and in
// bf16 four heads, four strips of queries and two of scores
// (attention_tiles.c).
static inline size_t attention_scratch(int T, int C, int NH)
{
    size_t Tp = ((size_t)T + ATTENTION_STEP - 1) / ATTENTION_STEP;
    size_t Dp = ((size_t)C / NH + ATTENTION_DEPTH - 1) / ATTENTION_DEPTH;
    Tp *= ATTENTION_STEP;
    Dp *= ATTENTION_DEPTH;
    return 6 * Tp * Dp + ATTENTION_STEP * (3 * Dp + 2 * Tp);
}

// Columns that a thread sums into, padded to whole vectors.
static inline size_t partial_width(int C)
{
    return ((size_t)C + ATTENTION_LANES - 1) / ATTENTION_LANES *
           ATTENTION_LANES;
}

// What a slice's logits of a row contribute to its loss: the largest of them,
// the sum of e^(l - largest), and the target's logit, or 0 if another slice has
// it.
struct loss_part {
    float max, sum, right;
};

struct kernels {
    const char *isa;
    enum dtype format;

    // embed.c: out = mask(wte[x] + wpe[t]). Backward adds to dwte, which has
    // the rows of `here`. It replaces dwpe (T rows), or adds to it with `add`.
    void (*embed)(void *out, const void *wte, const void *wpe, const int32_t *x,
                  size_t rows, int T, int C, const struct mask *mask);
    void (*embed_backward)(float *dwte, float *dwpe, const void *dout,
                           const int32_t *x, struct words here, size_t rows,
                           int T, int C, bool add, const struct mask *mask);
    // The same for a slice, in two steps. embed_words(): out = wte[x], or 0 if
    // another slice has that row. embed_places(): out = mask(words + wpe[t]),
    // where words is the sum of all slices' rows. Its rows begin with row
    // mask->row of (B*T).
    void (*embed_words)(float *out, const void *wte, const int32_t *x,
                        struct words here, size_t rows, int C);
    void (*embed_places)(void *out, const float *words, const void *wpe,
                         size_t rows, int T, int C, const struct mask *mask);

    // norm.c: sum = res + mask(branch + branch_bias); out = LayerNorm(sum).
    // branch_bias may be NULL. If branch is NULL, sum is not written. If out is
    // NULL, only sum is written. Backward computes out again, dres (replaced,
    // or added to with add_dres) and the gradients of weight and bias. partial
    // is threads * 2 * partial_width(C) floats of scratch.
    void (*norm)(void *sum, void *out, float *mean, float *rstd,
                 const void *res, const void *branch, const void *branch_bias,
                 const void *weight, const void *bias, size_t rows, int C,
                 const struct mask *mask);
    void (*norm_backward)(void *dres, bool add_dres, void *out, float *dweight,
                          float *dbias, bool add, const void *dout,
                          const void *sum, const float *mean, const float *rstd,
                          const void *weight, const void *bias, size_t rows,
                          int C, float *partial);

    // gelu.c: out = gelu(in + bias), rows of C; bias (C) may be NULL. Backward
    // replaces d, the gradient of out, by the gradient of in, and computes out
    // again. A device with fused products has neither.
    void (*gelu)(void *out, const void *in, const void *bias, size_t rows,
                 int C);
    void (*gelu_backward)(void *d, void *out, const void *in, const void *bias,
                          size_t rows, int C);

    // attention.c: causal attention. out (B,T,C) and lse (B,NH,T), the log of
    // the sum of e^score of a row, from qkv (B,T,3C). Backward: dqkv (B,T,3C).
    void (*attention)(void *out, float *lse, const void *qkv,
                      const struct attention *a);
    void (*attention_backward)(void *dqkv, const void *dout, const void *out,
                               const float *lse, const void *qkv,
                               const struct attention *a);

    // attention_block.c: attention over the keys of one block. The keys come
    // before the queries, or are those of the queries. The block is merged into
    // out (B, of_queries, C) in fp32 and lse (B, NH, of_queries); the first one
    // replaces what is there. The queries are in qkv (B, of_queries, 3C), the
    // keys and values in kv (B, of_keys, 2C). Backward adds to dq (B,
    // of_queries, C) and dkv (B, of_keys, 2C), both fp32; `out`, in the model's
    // format, and lse are those of all blocks.
    void (*attention_block)(float *out, float *lse, const void *qkv,
                            const void *kv, const struct attention_runs *r,
                            const struct attention *a);
    void (*attention_block_backward)(float *dq, float *dkv, const void *dout,
                                     const void *out, const float *lse,
                                     const void *qkv, const void *kv,
                                     const struct attention_runs *r,
                                     const struct attention *a);

    // loss.c: loss[r] = the cross-entropy of row r of logits, which are
    // overwritten. dlogits = factor * gradient, unless it is NULL. In fp32
    // dlogits may be logits itself.
    void (*loss)(float *loss, void *dlogits, float *logits, const int32_t *y,
                 size_t rows, int V, float factor);
    // The same for a slice, which has the logits of `here`, in two steps.
    // loss_parts(): parts[r] = what the slice contributes to the loss of row r.
    // loss_joined(): from the parts (slices, rows) of all slices computes the
    // loss as loss() does, and dlogits of the slice.
    void (*loss_parts)(struct loss_part *parts, float *logits, const int32_t *y,
                       struct words here, size_t rows);
    void (*loss_joined)(float *loss, void *dlogits, float *logits,
                        const struct loss_part *parts, int slices, int slice,
                        const int32_t *y, struct words here, size_t rows,
                        float factor);
    // *mean = the mean of v[0, n), added in double in a fixed order.
    void (*mean)(float *mean, const float *v, size_t n);

    // vector_ops.c: small passes. sum_rows: out[c] = (or +=) the sum over rows;
    // partial is threads * partial_width(C) floats of scratch. mask_rows: out =
    // mask(in). fill_rows: every row of out = row (C). cast_up: from the format
    // to fp32. cast_down: rounds to the format. zero: v[0, n) = 0.
    void (*sum_rows)(float *out, const void *in, size_t rows, int C, bool add,
                     float *partial);
    void (*mask_rows)(void *out, const void *in, size_t rows, int C,
                      const struct mask *mask);
    void (*fill_rows)(float *out, const void *row, size_t rows, int C);
    void (*cast_up)(float *out, const void *in, size_t n);
    void (*cast_down)(void *out, const float *in, size_t n);
    void (*zero)(float *v, size_t n);
    // settle: grad = (or +=) in, rounded to the format.
    void (*settle)(float *grad, const float *in, size_t n, bool add);
    // add_parts: out[i] = (or +=) the sum of parts[p][i] in the order of p,
    // where parts is (count, n).
    void (*add_parts)(float *out, const float *parts, int count, size_t n,
                      bool add);
    // out (columns, rows) = in (rows, columns) transposed; rows of out are ldo
    // numbers apart.
    void (*transpose)(void *out, size_t ldo, const void *in, int rows,
                      int columns);
    // n columns of a matrix, copied to columns of another one. Rows are out_row
    // and in_row numbers apart.
    void (*copy_columns)(void *out, size_t out_row, const void *in,
                         size_t in_row, size_t rows, size_t n);
};

// The CPU's table for `format` and the best instruction set of this processor;
// MODEL_ISA=baseline|v3|v4|v4bf|amx in the environment forces one. NULL after
// fail().
const struct kernels *kernels_find(enum dtype format);

// The same by name: NULL if this processor or build has no such set.
const struct kernels *kernels_named(enum dtype format, const char *isa);

// The name of instruction set i of this build, best last; NULL after the last.
const char *kernels_isa(int i);
