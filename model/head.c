// head.c - the tied head and the loss, a slice of rows at a time.
//
// All logits of a step would be the largest tensor of all (4096 rows of 50257
// symbols: 785 MiB). So the head works on a slice of rows at a time. It
// computes the slice's logits, turns them into the loss and, in place, the
// gradient. The gradient times wte goes into m->branch; its product with the
// slice's input goes into wte's gradient. Then the memory is free for the next
// slice.
//
// A GPU pads rows of logits to m->stride numbers, since rows of 50257 numbers
// would not be aligned. Products treat the padding as symbols, too, so that no
// matrix has an odd width, for which a library may use slow kernels. The
// padding symbols' weights are the rows after wte, which belong to wpe and
// perhaps to layer 0: any finite numbers, since no code reads these logits. The
// gradient of these logits is 0. So the product writes 0 (or adds 0) to the
// gradients of those rows, which backward computes later.
//
// With mesh=tpN a worker has only the logits of some symbols. For each slice of
// rows, the workers exchange what their symbols contribute to the losses.

#include "model/state.h"

// Row `row` of a tensor (rows, C).
static void *row_of(const struct model *m, void *tensor, size_t row)
{
    size_t C = (size_t)m->job.config.channels;
    return (char *)tensor + row * C * dtype_bytes(m->job.precision);
}

void head_logits(struct model *m, size_t row, int rows, bool fp32)
{
    struct product_job j = {.m = rows,
                            .n = (int)m->stride,
                            .k = m->job.config.channels,
                            .tb = true,
                            .a = row_of(m, m->norm, row),
                            .b = weight_at(m, 0),
                            .out = m->logits,
                            .out_row = m->stride,
                            .out_fp32 = fp32};
    m->ops->product(m, &j);
}

static void slice_backward(struct model *m, size_t row, int rows, bool add)
{
    int C = m->job.config.channels;
    struct product_job dx = {.m = rows,
                             .n = C,
                             .k = (int)m->stride,
                             .a = m->dlogits,
                             .a_row = m->stride,
                             .b = weight_at(m, 0)};
    struct product_job dw = {.m = (int)m->stride,
                             .n = C,
                             .k = rows,
                             .ta = true,
                             .a = m->dlogits,
                             .a_row = m->stride,
                             .b = row_of(m, m->norm, row),
                             .out = grad_at(m, 0),
                             .out_fp32 = true,
                             .add = add};
    branch_product(m, &dx, row);
    m->ops->product(m, &dw);
}

// Computes the losses of n rows, beginning with `row`. If dlogits is not NULL,
// also computes the gradient of their logits. Returns 0, or -1 after fail().
static int slice_loss(struct model *m, size_t row, int n, void *dlogits,
                      float factor)
{
    const struct model_part *p = &m->job.config.part;
    const struct model_slices *s = m->job.slices;
    const int32_t *y = m->y + row;
    float *losses = m->losses + row;
    if (!s) {
        m->k->loss(losses, dlogits, m->logits, y, n, m->words.n, factor);
        return 0;
    }
    struct loss_part *own = m->parts + (size_t)p->slice * n;
    m->k->loss_parts(own, m->logits, y, m->words, n);
    if (s->gather(s->ctx, &m->parts->max, n * sizeof *m->parts / sizeof(float)))
        return -1;
    m->k->loss_joined(losses, dlogits, m->logits, m->parts, p->slices, p->slice,
                      y, m->words, n, factor);
    return 0;
}

int head(struct model *m, const struct model_step *step)
{
    size_t rows = m->rows;
    float factor = step ? step->scale / (float)whole_rows(m) : 0;
    bool add = step && adds_grads(m, step);
    if (rows_gather(m, m->norm))
        return -1;
    for (size_t row = 0; row < rows; row += m->slice) {
        size_t left = rows - row;
        int n = left < (size_t)m->slice ? (int)left : m->slice;
        head_logits(m, row, n, m->wide_logits);
        if (slice_loss(m, row, n, step ? m->dlogits : NULL, factor))
            return -1;
        if (step)
            slice_backward(m, row, n, add || row > 0);
    }
    m->k->mean(m->mean_loss, m->losses, rows);
    m->ops->ask_loss(m);
    return step ? branch_join(m) : 0;
}
