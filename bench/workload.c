// workload.c - a model, the backend `local` and a batch, as in a trainer.

#include "bench/workload.h"

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "device/device.h"
#include "sync/bucket.h"
#include "sync/derive.h"
#include "sync/local.h"

#include <omp.h>

static int draw_tokens(struct workload *s)
{
    int n = s->is.batch * s->is.tokens;
    s->x = mem_alloc(n, sizeof *s->x);
    s->y = mem_alloc(n, sizeof *s->y);
    if (!s->x || !s->y)
        return -1;
    for (int i = 0; i < n; i++) {
        s->x[i] = (int32_t)rng_below(1, i, s->is.config.vocab);
        s->y[i] = (int32_t)rng_below(2, i, s->is.config.vocab);
    }
    return 0;
}

static int draw_params(struct workload *s)
{
    bool host = device_is_host(s->dev);
    float *init = host ? s->params : mem_alloc(s->n, sizeof *init);
    if (!init)
        return -1;
    model_init(&s->is.config, 1, init);
    if (host)
        return 0;
    device_copy(s->dev, s->params, init, s->n * sizeof *init);
    mem_free(init);
    return 0;
}

static int open_model(struct workload *s)
{
    struct model_job job = {.config = s->is.config,
                            .precision = s->is.precision,
                            .batch = s->is.batch,
                            .tokens = s->is.tokens,
                            .threads = s->is.threads,
                            .train = true,
                            .params = s->params,
                            .grads = s->grads,
                            .dev = s->dev,
                            .tf32 = s->is.tf32,
                            .tune = s->is.tune,
                            .cudnn = s->is.cudnn};
    return draw_params(s) || model_open(&s->model, &job) ? -1 : 0;
}

// Weight decay applies to matrices only, as in the trainer.
static int set_rule(struct workload *s)
{
    struct optim_config *c = s->optim = mem_alloc(1, sizeof *c);
    if (!c)
        return -1;
    *c = (struct optim_config){.kind = OPTIM_ADAMW,
                               .beta1 = 0.9f,
                               .beta2 = 0.95f,
                               .eps = 1e-8f,
                               .weight_decay = 0.1f};
    for (int i = 0; i < model_ntensors(&s->is.config); i++) {
        struct tensor t;
        model_tensor(&s->is.config, i, &t);
        if (t.decay)
            c->decay[c->ndecay++] =
                (struct optim_range){t.off, t.n, t.shape[0]};
    }
    return 0;
}

static int cut_buckets(struct workload *s)
{
    enum { MOST = 4096 };
    size_t size = bucket_usual(s->n, 0);
    s->buckets = mem_alloc(MOST, sizeof *s->buckets);
    if (!s->buckets)
        return -1;
    s->nbuckets =
        bucket_cut(s->buckets, MOST, s->n, bucket_first(s->n, size), size);
    return s->nbuckets < 0 ? -1 : 0;
}

struct sync *workload_sync(struct workload *s, struct sync_settings *set,
                           const struct backend *row,
                           const struct sync_ops *ops,
                           const struct group_ops *const *carriers,
                           struct cluster *cluster)
{
    settings_defaults(set);
    sync_derive(set, row, cluster->world, s->n);
    struct sync_job job = {.backend = row,
                           .carriers = carriers,
                           .cluster = cluster,
                           .dev = s->dev,
                           .params = s->params,
                           .grads = s->grads,
                           .n = s->n,
                           .copy = model_copy(s->model),
                           .buckets = s->buckets,
                           .nbuckets = s->nbuckets,
                           .optim = s->optim,
                           .settings = set};
    struct sync *sync = sync_open(ops, &job);
    if (sync && sync_bcast(sync))
        sync_close(&sync);
    return sync;
}

static int open_local(struct workload *s)
{
    struct cluster_config alone = {.world = 1, .timeout_s = 60};
    if (set_rule(s) || cut_buckets(s) ||
        cluster_open(&s->cluster, &cluster_local, &alone))
        return -1;
    s->sync = s->local = workload_sync(s, &s->settings, backend_at(0),
                                       &sync_local, NULL, s->cluster);
    return s->local ? 0 : -1;
}

int workload_open(struct workload *s, const struct workload_case *c)
{
    *s = (struct workload){.is = *c, .n = model_nparams(&c->config)};
    if (device_open(&s->dev, c->device ? c->device : "cpu"))
        return -1;
    omp_set_num_threads(c->threads);
    s->params = device_alloc(s->dev, s->n, sizeof *s->params);
    s->grads = device_alloc_shared(s->dev, s->n, sizeof *s->grads);
    if (!s->params || !s->grads)
        return -1;
    return draw_tokens(s) || open_model(s) || open_local(s) ? -1 : 0;
}

void workload_close(struct workload *s)
{
    sync_close(&s->local);
    cluster_close(&s->cluster);
    model_close(&s->model);
    if (s->dev) {
        device_free(s->dev, s->params);
        device_free(s->dev, s->grads);
    }
    device_close(&s->dev);
    mem_free(s->buckets);
    mem_free(s->optim);
    mem_free(s->x);
    mem_free(s->y);
}

static void on_watermark(void *ctx, size_t off)
{
    struct workload *s = ctx;
    for (; s->filled < s->nbuckets && s->buckets[s->filled].off >= off;
         s->filled++)
        if (sync_ready(s->sync, s->filled))
            die("%s", fail_message());
}

struct workload_seconds workload_step(struct workload *s)
{
    float scale = s->is.precision == DTYPE_F16 ? 1024 : 1;
    struct model_step step = {.x = s->x,
                              .y = s->y,
                              .step = s->steps,
                              .scale = scale,
                              .watermark = on_watermark,
                              .ctx = s};
    struct sync_in in = {.step = s->steps + 1,
                         .lr = 1e-4f,
                         .grad_scale =
                             1 / scale / (float)s->sync->job.cluster->world,
                         .clip = 1};
    struct sync_out out;
    float loss;
    s->filled = 0;
    double start = workload_clock(s->is.threads);
    if (model_train(s->model, &step, &loss))
        die("%s", fail_message());
    double middle = workload_clock(s->is.threads);
    if (sync_step(s->sync, &in, &out))
        die("%s", fail_message());
    model_params_changed(s->model);
    double end = workload_clock(s->is.threads);
    s->steps++;
    return (struct workload_seconds){middle - start, end - middle};
}
