// subject.c - a model, the backend `local` and one batch, as a trainer has them.

#include "bench/subject.h"

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "config/config.h"
#include "device/device.h"
#include "sync/bucket.h"
#include "sync/local.h"

#include <omp.h>
#include <stdlib.h>

static void *need(void *p)
{
    if (!p)
        die("%s", fail_message());
    return p;
}

static void draw_tokens(struct subject *s)
{
    int n = s->is.batch * s->is.tokens;
    s->x = need(mem_alloc(n, sizeof *s->x));
    s->y = need(mem_alloc(n, sizeof *s->y));
    for (int i = 0; i < n; i++) {
        s->x[i] = (int32_t)rng_below(1, i, s->is.config.vocab);
        s->y[i] = (int32_t)rng_below(2, i, s->is.config.vocab);
    }
}

static void open_model(struct subject *s)
{
    struct model_job job = {.config = s->is.config,
                            .precision = s->is.precision,
                            .batch = s->is.batch,
                            .tokens = s->is.tokens,
                            .threads = s->is.threads,
                            .train = true,
                            .params = s->params,
                            .grads = s->grads,
                            .dev = s->dev};
    model_init(&s->is.config, 1, s->params);
    if (model_open(&s->model, &job))
        die("%s", fail_message());
}

// Weight decay on matrices only, as the trainer has it.
static void set_rule(struct subject *s)
{
    struct optim_config *c = need(mem_alloc(1, sizeof *c));
    *c = (struct optim_config){.kind = OPTIM_ADAMW,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .eps = 1e-8f,
                               .weight_decay = 0.1f};
    for (int i = 0; i < model_ntensors(&s->is.config); i++) {
        struct tensor t;
        model_tensor(&s->is.config, i, &t);
        if (t.decay)
            c->decay[c->ndecay++] = (struct optim_range){t.off, t.n};
    }
    s->optim = c;
}

static void cut_buckets(struct subject *s)
{
    enum { FIRST = 1 << 18, MOST = 4096 };
    s->buckets = need(mem_alloc(MOST, sizeof *s->buckets));
    s->nbuckets = bucket_cut(s->buckets, MOST, s->n, FIRST, bucket_usual(s->n));
    if (s->nbuckets < 0)
        die("%s", fail_message());
}

struct sync *subject_sync(struct subject *s, const struct sync_ops *ops,
                          struct cluster *cluster)
{
    struct sync_job job = {.cluster = cluster,
                           .dev = s->dev,
                           .params = s->params,
                           .grads = s->grads,
                           .n = s->n,
                           .copy = model_copy(s->model),
                           .buckets = s->buckets,
                           .nbuckets = s->nbuckets,
                           .optim = s->optim,
                           .opts = s->opts};
    struct sync *sync = need(sync_open(ops, &job));
    if (sync_bcast(sync))
        die("%s", fail_message());
    return sync;
}

static void open_local(struct subject *s)
{
    struct cluster_config alone = {.world = 1, .timeout_s = 60};
    set_rule(s);
    cut_buckets(s);
    if (cluster_open(&s->cluster, &cluster_local, &alone) ||
        opts_open(&s->opts, ""))
        die("%s", fail_message());
    s->sync = s->local = subject_sync(s, &sync_local, s->cluster);
}

void subject_open(struct subject *s, const struct subject_case *c)
{
    *s = (struct subject){.is = *c, .n = model_nparams(&c->config)};
    if (device_open(&s->dev, "cpu"))
        die("%s", fail_message());
    omp_set_num_threads(c->threads);
    s->params = need(device_alloc(s->dev, s->n, sizeof *s->params));
    s->grads = need(device_alloc_shared(s->dev, s->n, sizeof *s->grads));
    draw_tokens(s);
    open_model(s);
    open_local(s);
}

void subject_close(struct subject *s)
{
    sync_close(&s->local);
    opts_close(&s->opts);
    cluster_close(&s->cluster);
    model_close(&s->model);
    device_free(s->dev, s->params);
    device_free(s->dev, s->grads);
    device_close(&s->dev);
    mem_free(s->buckets);
    mem_free(s->optim);
    mem_free(s->x);
    mem_free(s->y);
}

static void on_watermark(void *ctx, size_t off)
{
    struct subject *s = ctx;
    for (; s->filled < s->nbuckets && s->buckets[s->filled].off >= off;
         s->filled++)
        if (sync_ready(s->sync, s->filled))
            die("%s", fail_message());
}

void subject_step(struct subject *s, double *compute, double *update)
{
    struct model_step step = {.x = s->x,
                              .y = s->y,
                              .step = s->steps,
                              .scale = 1,
                              .watermark = on_watermark,
                              .ctx = s};
    struct sync_in in = {.step = s->steps + 1,
                         .lr = 1e-4f,
                         .grad_scale = 1 / (float)s->sync->job.cluster->world,
                         .clip = 1};
    struct sync_out out;
    float loss;
    s->filled = 0;
    double start = subject_clock(s->is.threads);
    if (model_train(s->model, &step, &loss))
        die("%s", fail_message());
    double middle = subject_clock(s->is.threads);
    if (sync_step(s->sync, &in, &out))
        die("%s", fail_message());
    model_params_changed(s->model);
    *compute = middle - start;
    *update = subject_clock(s->is.threads) - middle;
    s->steps++;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double subject_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
