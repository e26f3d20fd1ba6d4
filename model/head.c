// head.c - the tied head and the loss, a slice of rows at a time.
//
// All logits of a step would be the largest tensor of all (4096 rows of 50257
// symbols: 785 MiB). A slice of them is made, turned into its loss and its
// gradient where it lies, and used up at once: its gradient times wte goes into
// m->branch, its product with the slice's input into wte's gradient.

#include "model/state.h"

void head_logits(struct cpu_model *m, size_t row, int rows)
{
    const struct model_config *g = &m->job.config;
    size_t at = row * g->channels * dtype_bytes(m->job.precision);
    struct product_job j = {.m = rows,
                            .n = g->vocab,
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
                             .k = g->vocab,
                             .a = m->dlogits,
                             .b = weight_at(m, 0),
                             .out = (char *)m->branch + at};
    struct product_job dw = {.m = g->vocab,
                             .n = g->channels,
                             .k = rows,
                             .ta = true,
                             .a = m->dlogits,
                             .b = (char *)m->norm + at,
                             .out = grad_at(m, 0),
                             .out_fp32 = true,
                             .add = add};
    product_run(m->product, &dx);
    product_run(m->product, &dw);
}

float head(struct cpu_model *m, const int32_t *y, size_t rows,
           const struct model_step *step)
{
    float factor = step ? step->scale / (float)rows : 0;
    bool add = step && adds_grads(m, step);
    for (size_t row = 0; row < rows; row += m->slice) {
        size_t left = rows - row;
        int n = left < (size_t)m->slice ? (int)left : m->slice;
        head_logits(m, row, n);
        m->k->loss(m->losses + row, step ? m->dlogits : NULL, m->logits,
                   y + row, n, m->job.config.vocab, factor);
        if (step)
            slice_backward(m, row, n, add || row > 0);
    }
    double sum = 0;
    for (size_t r = 0; r < rows; r++)
        sum += m->losses[r];
    return (float)(sum / (double)rows);
}
