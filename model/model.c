// model.c - the functions of model.h. Each checks its inputs and its results.
// passes.c and the files that it calls compute.

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
    if (!(g->dropout >= 0 && g->dropout < 1))
        return fail("model: dropout %g is outside [0, 1)", g->dropout);
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
    int rc = device_copy(job->dev, copy, job->params, n * sizeof *copy);
    if (!rc)
        rc = check_values(&job->config, copy);
    mem_free(copy);
    return rc;
}

static int check_tokens(const struct model *m, const char *what,
                        const int32_t *x, int B, int T)
{
    int V = m->job.config.vocab;
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++) {
            int32_t token = x[(size_t)b * T + t];
            if (token < 0 || token >= V)
                return fail("model: %s %d at row %d, position %d is outside "
                            "the vocabulary of %d",
                            what, token, b, t, V);
        }
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

// Checks the numbers of a pass. Returns whether its chunk is the first of the
// model.
static bool begins(const struct model *m, const struct model_pass *p)
{
    const struct model_job *job = &m->job;
    CHECK(p->chunk >= 0 && p->chunk < part_chunks(&job->config));
    CHECK(p->slot >= 0 && (p->slot < job->slots || p->slot == 0));
    CHECK(p->input >= 0 && (p->input < job->inputs || p->input == 0));
    CHECK(p->edge >= 0 && (p->edge < job->edges || p->edge == 0));
    return p->chunk == 0 && part_embeds(&job->config);
}

// Whether a pass's chunk is the last of the model.
static bool ends(const struct model *m, const struct model_pass *p)
{
    return p->chunk == part_chunks(&m->job.config) - 1 &&
           part_has_head(&m->job.config);
}

int model_forward(struct model *m, const struct model_step *s,
                  const struct model_pass *p)
{
    CHECK(m->job.train);
    if (begins(m, p) &&
        check_tokens(m, "token", s->x, m->job.batch, m->job.tokens) < 0)
        return -1;
    span_begin(s->lane, SPAN_FORWARD, s->micro);
    int rc = pass_forward(m, s, p);
    span_end(s->lane);
    return rc;
}

int model_backward(struct model *m, const struct model_step *s,
                   const struct model_pass *p, float *loss)
{
    float mean = 0;
    if (ends(m, p) &&
        check_tokens(m, "target", s->y, m->job.batch, m->job.tokens) < 0)
        return -1;
    span_begin(s->lane, SPAN_BACKWARD, s->micro);
    int rc = pass_backward(m, s, p, &mean);
    span_end(s->lane);
    if (rc || check_loss(m, mean) < 0)
        return -1;
    if (ends(m, p))
        *loss = mean;
    return 0;
}

int model_train(struct model *m, const struct model_step *s, float *loss)
{
    const struct model_pass whole = {.slot = 0};
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

int model_eval_chunk(struct model *m, const struct model_pass *p,
                     const int32_t *x, const int32_t *y, int batch, float *loss)
{
    int T = m->job.tokens;
    float mean = 0;
    CHECK(batch > 0 && batch <= m->job.batch);
    if ((begins(m, p) && check_tokens(m, "token", x, batch, T) < 0) ||
        (ends(m, p) && check_tokens(m, "target", y, batch, T) < 0) ||
        pass_eval(m, p, x, y, batch, &mean) < 0 || check_loss(m, mean) < 0)
        return -1;
    if (ends(m, p))
        *loss = mean;
    return 0;
}

int model_eval(struct model *m, const int32_t *x, const int32_t *y, int batch,
               float *loss)
{
    const struct model_pass whole = {.slot = 0};
    return model_eval_chunk(m, &whole, x, y, batch, loss);
}

int model_logits(struct model *m, const int32_t *x, int n, float *logits)
{
    CHECK(n > 0 && n <= m->job.tokens && part_is_whole(&m->job.config));
    if (check_tokens(m, "token", x, 1, n) < 0 ||
        pass_logits(m, x, n, logits) < 0)
        return -1;
    return check_loss(m, logits[0]);
}
