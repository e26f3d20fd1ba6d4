// head.c - the tied head and the loss, a slice of rows at a time.
//
// All logits of a step would be the largest tensor of all (4096 rows of 50257
// symbols: 785 MiB). So the head works on a slice of rows at a time. It
// computes the slice's logits, turns them into the loss and, in place, the
// gradient. The gradient times wte goes into m->branch; its product with the
// slice's input goes into wte's gradient. Then the memory is free for the next
// slice.
//
// With mesh=tpN a worker has only the logits of some symbols. For each slice of
// rows, the workers exchange what their symbols contribute to the losses.

#include "model/state.h"

void head_logits(struct cpu_model *m, size_t row, int rows)
{
    const struct model_config *g = &m->job.config;
    size_t at = row * g->channels * dtype_bytes(m->job.precision);
    struct product_job j = {.m = rows,
                            .n = m->words.n,
                            .k = g->channels,
                            .tb = true,
                            .a = (char *)m->norm + at,
                            .b = weight_at(m, 0),
                            .out = m->logits,
                            .out_fp32 = true};
    product_run(m->product, &j);
}

static void slice_backward(struct cpu_model *m, size_t row, int rows, bool add)
{
    const struct model_config *g = &m->job.config;
    size_t at = row * g->channels * dtype_bytes(m->job.precision);
    struct product_job dx = {.m = rows,
                             .n = g->channels,
                             .k = m->words.n,
                             .a = m->dlogits,
                             .b = weight_at(m, 0)};
    struct product_job dw = {.m = m->words.n,
                             .n = g->channels,
                             .k = rows,
                             .ta = true,
                             .a = m->dlogits,
                             .b = (char *)m->norm + at,
                             .out = grad_at(m, 0),
                             .out_fp32 = true,
                             .add = add};
    branch_product(m, &dx, row);
    product_run(m->product, &dw);
}

// Computes the losses of n rows, beginning with `row`. If dlogits is not NULL,
// also computes the gradient of their logits. Returns 0, or -1 after fail().
static int slice_loss(struct cpu_model *m, const int32_t *y, size_t row, int n,
                      void *dlogits, float factor)
{
    const struct model_slices *s = m->job.slices;
    const struct model_part *p = &m->job.config.part;
    float *losses = m->losses + row;
    if (!s) {
        m->k->loss(losses, dlogits, m->logits, y + row, n, m->words.n, factor);
        return 0;
    }
    struct loss_part *own = m->parts + (size_t)p->slice * n;
    m->k->loss_parts(own, m->logits, y + row, m->words, n);
    if (s->gather(s->ctx, &m->parts->max, n * sizeof *own / sizeof(float)))
        return -1;
    m->k->loss_joined(losses, dlogits, m->logits, m->parts, p->slices, p->slice,
                      y + row, m->words, n, factor);
    return 0;
}

int head(struct cpu_model *m, const int32_t *y, size_t rows,
         const struct model_step *step, float *loss)
{
    float factor = step ? step->scale / (float)rows : 0;
    bool add = step && adds_grads(m, step);
    for (size_t row = 0; row < rows; row += m->slice) {
        size_t left = rows - row;
        int n = left < (size_t)m->slice ? (int)left : m->slice;
        head_logits(m, row, n);
        if (slice_loss(m, y, row, n, step ? m->dlogits : NULL, factor))
            return -1;
        if (step)
            slice_backward(m, row, n, add || row > 0);
    }
    double sum = 0;
    for (size_t r = 0; r < rows; r++)
        sum += m->losses[r];
    *loss = (float)(sum / (double)rows);
    return step ? branch_join(m, rows) : 0;
}
