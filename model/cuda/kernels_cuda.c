// kernels_cuda.c - the table of operations on a GPU: puts each one into the
// compute queue of the model for which the calling thread works.

#include "model/cuda/gpu.h"

#include "base/base.h"
#include "device/cuda.h"
#include "model/cuda/dnn_attention.h"

#include <cuda_runtime_api.h>

static _Thread_local const struct model *current;

void cuda_kernels_begin(const struct model *m)
{
    current = m;
}

void cuda_kernels_end(void)
{
    current = NULL;
}

static const struct gpu *gpu(void)
{
    CHECK(current);
    return current->own;
}

static enum dtype format(void)
{
    return current->job.precision;
}

static void embed(void *out, const void *wte, const void *wpe, const int32_t *x,
                  size_t rows, int T, int C, const struct mask *mask)
{
    cuda_embed(gpu()->queue, format(), out, wte, wpe, x, rows, T, C, mask);
}

static void embed_words(float *out, const void *wte, const int32_t *x,
                        struct words here, size_t rows, int C)
{
    cuda_embed_words(gpu()->queue, format(), out, wte, x, here, rows, C);
}

static void embed_places(void *out, const float *words, const void *wpe,
                         size_t rows, int T, int C, const struct mask *mask)
{
    cuda_embed_places(gpu()->queue, format(), out, words, wpe, rows, T, C,
                      mask);
}

// The rows by token come from cuda_tokens_sort().
static void embed_backward(float *dwte, float *dwpe, const void *dout,
                           const int32_t *x, struct words here, size_t rows,
                           int T, int C, bool add, const struct mask *mask)
{
    (void)x, (void)here;
    int own = mask->place.own ? mask->place.own : T;
    cuda_embed_backward(gpu()->queue, format(), dwte, dwpe, dout,
                        &gpu()->tokens, (int)(rows / (size_t)own), T, C, add,
                        mask);
}

static void norm(void *sum, void *out, float *mean, float *rstd,
                 const void *res, const void *branch, const void *branch_bias,
                 const void *weight, const void *bias, size_t rows, int C,
                 const struct mask *mask)
{
    if (branch_bias) // the sum over slices is m->branch
        cuda_bias(gpu()->queue, format(), current->branch, branch_bias, rows,
                  C);
    cuda_norm(gpu()->queue, format(), sum, out, mean, rstd, res, branch, weight,
              bias, rows, C, mask);
}

static void norm_backward(void *dres, bool add_dres, void *out, float *dweight,
                          float *dbias, bool add, const void *dout,
                          const void *sum, const float *mean, const float *rstd,
                          const void *weight, const void *bias, size_t rows,
                          int C, float *partial)
{
    cuda_norm_backward(gpu()->queue, format(), dres, add_dres, out, dweight,
                       dbias, add, dout, sum, mean, rstd, weight, bias, rows, C,
                       partial);
}

struct cuda_attention cuda_attention_of(const struct model *m,
                                        const struct attention *a)
{
    return (struct cuda_attention){
        .B = a->B,
        .T = a->T,
        .C = a->C,
        .NH = a->NH,
        .format = m->job.precision,
        .tf32 = ((const struct gpu *)m->own)->tf32,
        .mask = a->mask,
        .head = a->head,
        .heads = a->heads,
    };
}

// cuDNN's attention, if it is used for this shape; else NULL.
static const struct dnn_attention *dnn_for(const struct cuda_attention *a)
{
    const struct dnn_attention *dnn = gpu()->dnn;
    return dnn && dnn_attention_fits(dnn, a) ? dnn : NULL;
}

static void attention(void *out, float *lse, const void *qkv,
                      const struct attention *shape)
{
    struct cuda_attention a = cuda_attention_of(current, shape);
    const struct dnn_attention *dnn = dnn_for(&a);
    if (dnn)
        dnn_attention_forward(dnn, out, lse, qkv);
    else
        cuda_attention(gpu()->queue, out, lse, qkv, &a);
}

static void attention_backward(void *dqkv, const void *dout, const void *out,
                               const float *lse, const void *qkv,
                               const struct attention *shape)
{
    struct cuda_attention a = cuda_attention_of(current, shape);
    const struct dnn_attention *dnn = dnn_for(&a);
    if (dnn)
        dnn_attention_backward(dnn, dqkv, shape->scratch, dout, out, lse, qkv);
    else
        cuda_attention_backward(gpu()->queue, dqkv, shape->scratch, dout, out,
                                lse, qkv, &a);
}

static void attention_block(float *out, float *lse, const void *qkv,
                            const void *kv, const struct attention_runs *r,
                            const struct attention *shape)
{
    struct cuda_attention a = cuda_attention_of(current, shape);
    cuda_attention_block(gpu()->queue, out, lse, qkv, kv, r, &a);
}

static void attention_block_backward(float *dq, float *dkv, const void *dout,
                                     const void *out, const float *lse,
                                     const void *qkv, const void *kv,
                                     const struct attention_runs *r,
                                     const struct attention *shape)
{
    struct cuda_attention a = cuda_attention_of(current, shape);
    cuda_attention_block_backward(gpu()->queue, dq, dkv, shape->scratch, dout,
                                  out, lse, qkv, kv, r, &a);
}

static void loss(float *loss, void *dlogits, float *logits, const int32_t *y,
                 size_t rows, int V, float factor)
{
    CHECK(!dlogits || dlogits == logits);
    cuda_loss(gpu()->queue, format(), loss, logits, current->stride, y, rows, V,
              factor, dlogits != NULL);
}

static void loss_parts(struct loss_part *parts, float *logits, const int32_t *y,
                       struct words here, size_t rows)
{
    cuda_loss_parts(gpu()->queue, format(), parts, logits, current->stride, y,
                    here, rows);
}

static void loss_joined(float *loss, void *dlogits, float *logits,
                        const struct loss_part *parts, int slices, int slice,
                        const int32_t *y, struct words here, size_t rows,
                        float factor)
{
    (void)slice;
    CHECK(!dlogits || dlogits == logits);
    cuda_loss_joined(gpu()->queue, format(), loss, logits, current->stride,
                     parts, slices, y, here, rows, factor, dlogits != NULL);
}

static void mean(float *mean, const float *v, size_t n)
{
    cuda_mean(gpu()->queue, mean, v, n);
}

static void sum_rows(float *out, const void *in, size_t rows, int C, bool add,
                     float *partial)
{
    cuda_sum_rows(gpu()->queue, format(), out, in, rows, C, add, partial);
}

static void mask_rows(void *out, const void *in, size_t rows, int C,
                      const struct mask *mask)
{
    cuda_mask_rows(gpu()->queue, format(), out, in, rows, C, mask);
}

static void cast_down(void *out, const float *in, size_t n)
{
    cuda_cast(gpu()->queue, out, format(), in, DTYPE_F32, 1, n);
}

static void zero(float *v, size_t n)
{
    CU(cudaMemsetAsync(v, 0, n * sizeof *v, gpu()->queue));
}

static void settle(float *grad, const float *in, size_t n, bool add)
{
    cuda_settle(gpu()->queue, format(), grad, in, n, add);
}

static void add_parts(float *out, const float *parts, int count, size_t n,
                      bool add)
{
    cuda_add_parts(gpu()->queue, out, parts, count, n, add);
}

static void copy_columns(void *out, size_t out_row, const void *in,
                         size_t in_row, size_t rows, size_t n)
{
    size_t size = dtype_bytes(format());
    CU(cudaMemcpy2DAsync(out, out_row * size, in, in_row * size, n * size, rows,
                         cudaMemcpyDefault, gpu()->queue));
}

const struct kernels kernels_cuda = {
    .isa = "cuda",
    .embed = embed,
    .embed_words = embed_words,
    .embed_places = embed_places,
    .embed_backward = embed_backward,
    .norm = norm,
    .norm_backward = norm_backward,
    .attention = attention,
    .attention_backward = attention_backward,
    .attention_block = attention_block,
    .attention_block_backward = attention_block_backward,
    .loss = loss,
    .loss_parts = loss_parts,
    .loss_joined = loss_joined,
    .mean = mean,
    .sum_rows = sum_rows,
    .mask_rows = mask_rows,
    .cast_down = cast_down,
    .zero = zero,
    .settle = settle,
    .add_parts = add_parts,
    .copy_columns = copy_columns,
};
