// model_cpu.c - a model in host memory: its block of memory, its threads, and
// the table of its functions.
//
// The computation itself is forward.c, head.c and backward.c.

#include "model/ops.h"

#include "base/base.h"
#include "model/state.h"
#include "telemetry/span.h"

#include <omp.h>
#include <string.h>

// Sets the addresses of the blocks that are not lent.
static void place_blocks(struct cpu_model *m)
{
    size_t size = dtype_bytes(m->job.precision);
    for (int b = 0; b < model_nblocks(&m->job.config); b++) {
        size_t off = m->off[block_first(b)];
        if (m->weights)
            m->places[b].weights = (char *)m->weights + off * size;
        if (m->grads)
            m->places[b].grads = m->grads + off;
    }
}

static int cpu_open(struct model *model)
{
    const struct model_job *job = &model->job;
    const struct kernels *k = kernels_find(job->precision);
    struct cpu_model *m = k ? mem_alloc(1, sizeof *m) : NULL;
    if (!m)
        return -1;
    model->state = m;
    *m = (struct cpu_model){.job = *job,
                            .k = k,
                            .threads = state_threads(job),
                            .normed = -1};
    size_t bytes = state_layout(m, NULL);
    m->block = mem_alloc(bytes, 1);
    if (!m->block)
        return -1;
    state_layout(m, m->block);
    model->copy.at = m->weights;
    layers_offsets(&job->config, m->off);
    place_blocks(m);
    return product_open(&m->product, k, &m->products);
}

static void cpu_close(struct model *model)
{
    struct cpu_model *m = model->state;
    if (!m)
        return;
    product_close(&m->product);
    mem_free(m->block);
    mem_free(m);
}

// Sets the calling thread's number of threads to this model's. Returns the old
// number.
static int take_threads(const struct cpu_model *m)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(m->threads);
    return before;
}

static void cpu_params_changed(struct model *model)
{
    struct cpu_model *m = model->state;
    int before = take_threads(m);
    m->k->cast_down(m->weights, m->job.params, m->nparams);
    omp_set_num_threads(before);
}

static int cpu_forward(struct model *model, const struct model_step *s,
                       const struct model_pass *p)
{
    struct cpu_model *m = model->state;
    int before = take_threads(m);
    int rc = forward(m, p, s->x, m->job.batch, m->job.tokens, s);
    omp_set_num_threads(before);
    return rc;
}

// The head's part of backward. It reads ln_f's output, which forward left in
// m->norm. If another slot's forward has overwritten it, computes it again.
static int begin_backward(struct cpu_model *m, const struct model_step *s,
                          int slot, float *loss)
{
    if (block_take(m, 0, true))
        return -1; // the head writes wte's gradient first
    span_begin(s->lane, SPAN_FORWARD, -1);
    if (m->normed != slot)
        norm_again(m);
    m->normed = -1;
    int rc = head(m, s->y, (size_t)m->job.batch * m->job.tokens, s, loss);
    span_end(s->lane);
    return rc;
}

static int cpu_backward(struct model *model, const struct model_step *s,
                        const struct model_pass *p, float *loss)
{
    struct cpu_model *m = model->state;
    int before = take_threads(m);
    state_begin_pass(m, p);
    int rc = is_last(m) ? begin_backward(m, s, p->slot, loss) : 0;
    if (!rc)
        rc = backward(m, s);
    omp_set_num_threads(before);
    return rc;
}

static void *cpu_between(struct model *model, enum model_between what, int i)
{
    struct cpu_model *m = model->state;
    return what == BETWEEN_INPUT    ? m->inputs[i]
           : what == BETWEEN_OUTPUT ? m->ends[i]
                                    : m->edges[i];
}

// Gives back the blocks that forward leaves taken for backward. Here no
// backward follows.
static int give_ends(struct cpu_model *m)
{
    int last = model_nblocks(&m->job.config) - 1;
    return block_give(m, 0) || block_give(m, last) ? -1 : 0;
}

static int cpu_eval(struct model *model, const struct model_pass *p,
                    const int32_t *x, const int32_t *y, int batch, float *loss)
{
    struct cpu_model *m = model->state;
    int T = m->job.tokens, before = take_threads(m);
    int rc = forward(m, p, x, batch, T, NULL);
    if (!rc && is_last(m))
        rc = head(m, y, (size_t)batch * T, NULL, loss);
    omp_set_num_threads(before);
    return rc ? rc : give_ends(m);
}

static int cpu_logits(struct model *model, const int32_t *x, int n,
                      float *logits)
{
    struct cpu_model *m = model->state;
    int V = m->job.config.vocab, before = take_threads(m);
    const struct model_pass whole = {.slot = 0};
    int rc = forward(m, &whole, x, 1, n, NULL);
    if (!rc)
        head_logits(m, (size_t)n - 1, 1);
    omp_set_num_threads(before);
    if (rc)
        return -1;
    memcpy(logits, m->logits, V * sizeof *logits);
    return give_ends(m);
}

const struct model_ops model_cpu = {
    .device = "cpu",
    .borrows = true,
    .parts = true,
    .open = cpu_open,
    .params_changed = cpu_params_changed,
    .forward = cpu_forward,
    .backward = cpu_backward,
    .between = cpu_between,
    .eval = cpu_eval,
    .logits = cpu_logits,
    .memory = state_memory,
    .close = cpu_close,
};
