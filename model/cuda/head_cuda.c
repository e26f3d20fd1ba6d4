// head_cuda.c - the tied head and the loss on a GPU, a slice of rows at a time.
//
// A slice of logits is computed in the model's format and replaced in place by
// its gradient, which products read at once (model/head.c says why). Sums are
// fp32. Rows are padded to a multiple of 64 numbers, since rows of 50257
// numbers would not be aligned.
//
// Products treat the padding as tokens, too, so that no matrix has an odd
// width, for which a library may use slow kernels. The padding tokens' weights
// are the rows after wte, which belong to wpe and perhaps to layer 0: any
// finite numbers, since no code reads these logits. The gradient of these
// logits is 0. So the product writes 0 (or adds 0) to the gradients of those
// rows, which backward computes later.

#include "model/cuda/forward_cuda.h"

static void *norm_row(const struct cuda_model *m, const void *base, size_t row)
{
    size_t C = (size_t)m->job.config.channels;
    return (char *)(uintptr_t)base + row * C * dtype_bytes(m->job.precision);
}

void cuda_head_logits(struct cuda_model *m, size_t row, int rows, bool fp32)
{
    const struct model_config *g = &m->job.config;
    struct cuda_product_job j = {.m = rows,
                                 .n = (int)m->stride,
                                 .k = g->channels,
                                 .tb = true,
                                 .a = norm_row(m, m->norm, row),
                                 .b = weight_at(m, 0),
                                 .out = m->logits,
                                 .out_row = m->stride,
                                 .out_fp32 = fp32};
    cuda_product_run(m->product, &j);
}

static void slice_backward(struct cuda_model *m, size_t row, int rows, bool add)
{
    const struct model_config *g = &m->job.config;
    struct cuda_product_job dx = {.m = rows,
                                  .n = g->channels,
                                  .k = (int)m->stride,
                                  .a = m->logits,
                                  .a_row = m->stride,
                                  .b = weight_at(m, 0),
                                  .out = norm_row(m, m->branch, row)};
    struct cuda_product_job dw = {.m = (int)m->stride,
                                  .n = g->channels,
                                  .k = rows,
                                  .ta = true,
                                  .a = m->logits,
                                  .a_row = m->stride,
                                  .b = norm_row(m, m->norm, row),
                                  .out = m->grads,
                                  .out_fp32 = true,
                                  .add = add};
    cuda_product_run(m->product, &dx);
    cuda_product_run(m->product, &dw);
}

void cuda_head(struct cuda_model *m, size_t rows, const struct model_step *step)
{
    float factor = step ? step->scale / (float)rows : 0;
    bool add = step && step->accumulate && m->grads == m->job.grads;
    for (size_t row = 0; row < rows; row += (size_t)m->slice) {
        size_t left = rows - row;
        int n = left < (size_t)m->slice ? (int)left : m->slice;
        cuda_head_logits(m, row, n, false);
        cuda_loss(m->queue, m->job.precision, m->losses + row, m->logits,
                  m->stride, m->y + row, (size_t)n, m->job.config.vocab, factor,
                  step != NULL);
        if (step)
            slice_backward(m, row, n, add || row > 0);
    }
    cuda_mean(m->queue, m->mean_loss, m->losses, rows);
}
