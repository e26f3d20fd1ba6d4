// kernels_cuda.c - the table of operations on a GPU. Each one goes into the
// compute queue of the model for which the calling thread works.

#include "model/cuda/kernels_cuda.h"

#include "device/cuda.h"
#include "model/cuda/dnn_attention.h"

#include <cuda_runtime_api.h>

// cuDNN's attention, if it is used for this shape; else NULL.
static const struct dnn_attention *dnn_for(const struct attention *a)
{
    const struct cuda_model *m = cuda_current();
    return m->dnn && dnn_attention_fits(m->dnn, m->format, a) ? m->dnn : NULL;
}

static void attention(void *out, float *lse, const void *qkv,
                      const struct attention *a)
{
    const struct dnn_attention *dnn = dnn_for(a);
    if (dnn)
        dnn_attention_forward(dnn, out, lse, qkv);
    else
        cuda_attention(out, lse, qkv, a);
}

static void attention_backward(void *dqkv, const void *dout, const void *out,
                               const float *lse, const void *qkv,
                               const struct attention *a)
{
    const struct dnn_attention *dnn = dnn_for(a);
    if (dnn)
        dnn_attention_backward(dnn, dqkv, a->scratch, dout, out, lse, qkv);
    else
        cuda_attention_backward(dqkv, dout, out, lse, qkv, a);
}

static void sum_rows(float *out, const void *in, size_t rows, int C, bool add,
                     float *partial)
{
    const struct cuda_model *m = cuda_current();
    cuda_sum_rows(m->queue, m->format, out, in, rows, C, add, partial);
}

static void cast_down(void *out, const float *in, size_t n)
{
    const struct cuda_model *m = cuda_current();
    cuda_cast(m->dev, DEVICE_COMPUTE, out, m->format, in, DTYPE_F32, 1, n);
}

static void zero(float *v, size_t n)
{
    CU(cudaMemsetAsync(v, 0, n * sizeof *v, cuda_current()->queue));
}

static void copy_columns(void *out, size_t out_row, const void *in,
                         size_t in_row, size_t rows, size_t n)
{
    const struct cuda_model *m = cuda_current();
    size_t size = dtype_bytes(m->format);
    CU(cudaMemcpy2DAsync(out, out_row * size, in, in_row * size, n * size, rows,
                         cudaMemcpyDefault, m->queue));
}

const struct kernels kernels_cuda = {
    .isa = "cuda",
    .embed = cuda_embed,
    .embed_words = cuda_embed_words,
    .embed_places = cuda_embed_places,
    .embed_backward = cuda_embed_backward,
    .norm = cuda_norm,
    .norm_backward = cuda_norm_backward,
    .attention = attention,
    .attention_backward = attention_backward,
    .attention_block = cuda_attention_block,
    .attention_block_backward = cuda_attention_block_backward,
    .loss = cuda_loss,
    .loss_parts = cuda_loss_parts,
    .loss_joined = cuda_loss_joined,
    .mean = cuda_mean,
    .sum_rows = sum_rows,
    .mask_rows = cuda_mask_rows,
    .cast_down = cast_down,
    .zero = zero,
    .settle = cuda_settle,
    .add_parts = cuda_add_parts,
    .copy_columns = copy_columns,
};
