// model.c - the functions of model.h: checks of their inputs and results, and
// the passes over a chunk, between which the loss comes back.
//
//     host     queue forward, head | backward, bucket by bucket | wait: loss
//     GPU      ......... forward ......... head * ....... backward ........
//                                               loss to the host
//
// The host waits for the loss alone, which a GPU knows before it begins
// backward. All of backward is in the queue by then, so the GPU is not idle
// while the host waits.

#include "model/model.h"

#include "base/base.h"
#include "device/device.h"
#include "model/state.h"
#include "telemetry/span.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static const struct model_ops *const table[] = {
    &model_cpu,
#if defined(LOCKSTEP_CUDA)
    &model_cuda,
#endif
};

enum { DEVICES = sizeof table / sizeof *table };

// The functions that compute on the device of the job's parameters.
static const struct model_ops *find(const struct model_job *job)
{
    const char *name = job->dev ? job->dev->ops->name : "cpu";
    for (int i = 0; i < DEVICES; i++)
        if (!strcmp(table[i]->device, name))
            return table[i];
    fail("model: this build cannot compute on device=%s", name);
    return NULL;
}

// ---- checks of inputs

static int check_job(const struct model_job *job)
{
    if (model_check(&job->config) < 0)
        return -1;
    const struct model_config *g = &job->config;
    if (job->batch < 1 || job->tokens < 1 || job->threads < 0)
        return fail("model: batch=%d, context=%d, threads=%d; try: 1 or more",
                    job->batch, job->tokens, job->threads);
    if (job->tokens > g->context)
        return fail("model: %d tokens do not fit a context of %d", job->tokens,
                    g->context);
    if ((size_t)job->batch * job->tokens > INT_MAX / 4)
        return fail("model: %d rows of %d tokens are too many for one step; "
                    "try: a smaller batch and accum",
                    job->batch, job->tokens);
    CHECK(job->lent_weights || job->params);
    CHECK(job->lent_grads || job->grads || !job->train);
    CHECK(job->lender || !(job->lent_weights || job->lent_grads));
    CHECK(part_is_whole(g) || !(job->lent_weights || job->lent_grads));
    CHECK((g->part.slices > 0) == (job->slices != NULL));
    return 0;
}

// Returns -1 after fail() with the name of the first weight that is NaN or
// infinite; 0 if there is none.
static int check_values(const struct model_config *g, const float *params)
{
    for (int i = 0; i < model_ntensors(g); i++) {
        struct tensor t;
        model_tensor(g, i, &t);
        for (size_t k = 0; k < t.n; k++)
            if (!isfinite(params[t.off + k]))
                return fail("model: weight %s[%zu] is %g", t.name, k,
                            params[t.off + k]);
    }
    return 0;
}

static int check_weights(const struct model_job *job)
{
    if (job->lent_weights)
        return 0; // the lender has them
    if (!job->dev || device_is_host(job->dev))
        return check_values(&job->config, job->params);
    size_t n = model_nparams(&job->config);
    float *copy = mem_alloc(n, sizeof *copy);
    if (!copy)
        return -1;
    device_copy(job->dev, copy, job->params, n * sizeof *copy);
    int rc = check_values(&job->config, copy);
    mem_free(copy);
    return rc;
}

// Checks the tokens or targets of a pass.
static int check_tokens(const struct model *m, const char *what,
                        const int32_t *x)
{
    int V = m->job.config.vocab;
    for (size_t i = 0; i < m->rows; i++)
        if (x[i] < 0 || x[i] >= V)
            return fail("model: %s %d at row %zu, position %zu is outside the "
                        "vocabulary of %d",
                        what, x[i], i / m->tokens, i % m->tokens, V);
    return 0;
}

// If the loss is not finite, looks for weights that are not. They are an error,
// since no loss scale can mend them. An overflow of 16-bit activations is left
// to the caller.
static int check_loss(const struct model *m, float loss)
{
    return isfinite(loss) ? 0 : check_weights(&m->job);
}

// ---- calls

int model_open(struct model **out, const struct model_job *job)
{
    const struct model_ops *ops = find(job);
    if (!ops || check_job(job) < 0 || check_weights(job) < 0)
        return -1;
    struct model *m = mem_alloc(1, sizeof *m);
    if (!m)
        return -1;
    *m = (struct model){.ops = ops,
                        .job = *job,
                        .copy = {.format = job->precision}};
    if (ops->open(m) < 0) {
        model_close(&m);
        return -1;
    }
    model_params_changed(m);
    if (ops->ready && ops->ready(m) < 0) {
        model_close(&m);
        return -1;
    }
    *out = m;
    return 0;
}

void model_close(struct model **m)
{
    if (!*m)
        return;
    (*m)->ops->close(*m);
    mem_free(*m);
    *m = NULL;
}

void model_memory(const struct model_job *job, struct model_bytes *out)
{
    const struct model_ops *ops = find(job);
    CHECK(ops);
    ops->memory(job, out);
}

int model_peak(const struct model_job *job, struct model_peak *out)
{
    const struct model_ops *ops = find(job);
    CHECK(ops);
    if (ops->peak)
        return ops->peak(job, out);
    *out = (struct model_peak){.device = ops->device};
    return 0;
}

double model_flop(const struct model_config *c, int tokens)
{
    double n = (double)model_nparams(c) - (double)c->context * c->channels;
    return 6 * n + 12.0 * c->layers * c->channels * tokens;
}

struct half_copy *model_copy(struct model *m)
{
    bool none = m->job.precision == DTYPE_F32 || m->job.lent_weights;
    return none ? NULL : &m->copy;
}

static void cast_weights(struct model *m)
{
    int before = m->ops->begin(m);
    m->k->cast_down(m->weights, m->job.params, m->nparams);
    m->ops->end(m, before);
}

void model_params_changed(struct model *m)
{
    if (model_copy(m) && !m->copy.fresh)
        cast_weights(m);
    m->copy.fresh = false;
}

// ---- passes

static const struct model_pass whole; // all members are 0

// Sets the layers, the buffers and the rows of a pass over B sequences of T
// tokens.
static void begin_pass(struct model *m, const struct model_pass *p, int B,
                       int T)
{
    const struct model_job *job = &m->job;
    CHECK(p->chunk >= 0 && p->chunk < part_chunks(&job->config));
    CHECK(p->slot >= 0 && p->slot < at_least_one(job->slots));
    CHECK(p->input >= 0 && p->input < at_least_one(job->inputs));
    CHECK(p->edge >= 0 && p->edge < at_least_one(job->edges));
    m->batch = B;
    m->tokens = T;
    m->rows = (size_t)B * T;
    m->own_rows = layers_rows(job, m->rows);
    m->slot = p->slot;
    m->layers = m->all_layers + (size_t)p->slot * job->config.layers;
    m->last = m->ends[p->slot];
    part_chunk(&job->config, p->chunk, &m->from, &m->to);
    if (job->inputs)
        m->layers[m->from].in = m->inputs[p->input];
    m->dres = job->train ? m->edges[p->edge] : NULL;
    if (m->sum && job->precision == DTYPE_F32)
        m->branch = rows_own(m, m->sum);
}

int model_forward(struct model *m, const struct model_step *s,
                  const struct model_pass *p)
{
    CHECK(m->job.train);
    begin_pass(m, p, m->job.batch, m->job.tokens);
    if (is_first(m) && check_tokens(m, "token", s->x) < 0)
        return -1;
    span_begin(s->lane, SPAN_FORWARD, s->micro);
    int before = m->ops->begin(m);
    int rc = forward(m, s->x, s);
    m->ops->end(m, before);
    span_end(s->lane);
    return rc;
}

// The head's part of backward. It reads ln_f's output, which forward left in
// m->norm. If another slot's forward has overwritten it, computes it again.
static int begin_backward(struct model *m, const struct model_step *s)
{
    if (block_take(m, 0, true))
        return -1; // the head writes wte's gradient first
    span_begin(s->lane, SPAN_FORWARD, -1);
    m->ops->targets(m, s->y, m->rows);
    if (m->normed != m->slot)
        norm_again(m);
    m->normed = -1;
    int rc = head(m, s);
    span_end(s->lane);
    return rc;
}

// Returns the mean loss of the pass's rows; of divided sequences this worker's
// share of the mean of all.
static float read_loss(struct model *m)
{
    float loss = m->ops->read_loss(m);
    return m->job.pieces ? loss * ((float)m->rows / (float)whole_rows(m))
                         : loss;
}

int model_backward(struct model *m, const struct model_step *s,
                   const struct model_pass *p, float *loss)
{
    float mean = 0;
    begin_pass(m, p, m->job.batch, m->job.tokens);
    if (is_last(m) && check_tokens(m, "target", s->y) < 0)
        return -1;
    span_begin(s->lane, SPAN_BACKWARD, s->micro);
    int before = m->ops->begin(m);
    if (is_first(m) && m->ops->group) // while a GPU computes forward
        m->ops->group(m, s->x, m->rows);
    int rc = is_last(m) ? begin_backward(m, s) : 0;
    if (!rc)
        rc = backward(m, s);
    if (!rc && is_last(m))
        mean = read_loss(m);
    m->ops->end(m, before);
    span_end(s->lane);
    if (rc || check_loss(m, mean) < 0)
        return -1;
    if (is_last(m))
        *loss = mean;
    return 0;
}

int model_train(struct model *m, const struct model_step *s, float *loss)
{
    return model_forward(m, s, &whole) || model_backward(m, s, &whole, loss)
               ? -1
               : 0;
}

void *model_input(struct model *m, int input)
{
    return m->inputs[input];
}

void *model_output(struct model *m, int slot)
{
    return m->ends[slot];
}

void *model_edge(struct model *m, int edge)
{
    return m->edges[edge];
}

// Gives back the blocks that forward leaves taken for backward. Here no
// backward follows.
static int give_ends(struct model *m)
{
    int last = model_nblocks(&m->job.config) - 1;
    return block_give(m, 0) || block_give(m, last) ? -1 : 0;
}

int model_eval_chunk(struct model *m, const struct model_pass *p,
                     const int32_t *x, const int32_t *y, int batch, float *loss)
{
    float mean = 0;
    CHECK(batch > 0 && batch <= m->job.batch);
    begin_pass(m, p, batch, m->job.tokens);
    if ((is_first(m) && check_tokens(m, "token", x) < 0) ||
        (is_last(m) && check_tokens(m, "target", y) < 0))
        return -1;
    int before = m->ops->begin(m);
    int rc = forward(m, x, NULL);
    if (!rc && is_last(m)) {
        m->ops->targets(m, y, m->rows);
        rc = head(m, NULL);
        if (!rc)
            mean = read_loss(m);
    }
    m->ops->end(m, before);
    if (rc || give_ends(m) || check_loss(m, mean) < 0)
        return -1;
    if (is_last(m))
        *loss = mean;
    return 0;
}

int model_eval(struct model *m, const int32_t *x, const int32_t *y, int batch,
               float *loss)
{
    return model_eval_chunk(m, &whole, x, y, batch, loss);
}

int model_logits(struct model *m, const int32_t *x, int n, float *logits)
{
    CHECK(n > 0 && n <= m->job.tokens && part_is_whole(&m->job.config));
    begin_pass(m, &whole, 1, n);
    if (check_tokens(m, "token", x) < 0)
        return -1;
    int before = m->ops->begin(m);
    int rc = forward(m, x, NULL);
    if (!rc) {
        head_logits(m, (size_t)n - 1, 1, true);
        m->ops->fetch(m, logits, m->logits,
                      (size_t)m->job.config.vocab * sizeof *logits);
    }
    m->ops->end(m, before);
    return rc || give_ends(m) ? -1 : check_loss(m, logits[0]);
}
