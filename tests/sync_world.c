// sync_world.c - worlds of workers, for the cases that every backend must pass.

#include "tests/sync_cases.h"

#include "sync/bucket.h"
#include "sync/local.h"
#include "tests/settings.h"

#include "base/base.h"
#include "base/rng.h"
#include "device/device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int worker_open(struct worker *w, const char *opts)
{
    const struct setup *s = w->setup;
    w->text = opts;
    w->optim = (struct optim_config){
        .kind = s->sgd ? OPTIM_SGD : OPTIM_ADAMW,
        .beta1 = 0.9f,
        .beta2 = 0.99f,
        .eps = 1e-8f,
        .weight_decay = 0.1f,
        .momentum = 0.9f,
    };
    if (s->n >= 3) { // the middle is a matrix of about twice as many columns
        size_t rows = (size_t)sqrt((double)s->n / 6);
        rows = rows ? rows : 1;
        w->optim.ndecay = 1;
        w->optim.decay[0] =
            (struct optim_range){s->n / 3, s->n / 3 / rows * rows, rows};
    }
    int count =
        bucket_cut(w->buckets, CASE_BUCKETS, s->n, s->first ? s->first : s->n,
                   s->bucket ? s->bucket : s->n);
    int rc = w->fixture->device ? w->fixture->device(&w->dev)
                                : device_open(&w->dev, "cpu");
    if (count < 0 || rc ||
        settings_text(&w->settings, opts, w->fixture->sync, w->world, s->n))
        return -1;
    w->job = (struct sync_job){
        .backend = backend_find(w->fixture->sync),
        .carriers = w->fixture->carriers,
        .cluster = w->cluster,
        .dev = w->dev,
        .params = device_alloc(w->dev, s->n, sizeof(float)),
        .grads =
            (w->fixture->shared ? device_alloc_shared
                                : device_alloc)(w->dev, s->n, sizeof(float)),
        .n = s->n,
        .buckets = w->buckets,
        .nbuckets = count,
        .awaits = w->fixture->awaits,
        .optim = &w->optim,
        .settings = &w->settings,
        .velocity_decay = w->settings.momentum_correction ||
                                  w->settings.squeeze == SQUEEZE_DEMO
                              ? 0.9f
                              : 0,
        .grad_scale = 1.0f / (float)w->world,
    };
    return w->job.params && w->job.grads ? 0 : -1;
}

static void worker_close(struct worker *w)
{
    sync_close(&w->sync);
    if (w->dev) {
        device_free(w->dev, w->job.params);
        device_free(w->dev, w->job.grads);
        device_close(&w->dev);
    }
}

// Fills a range of the backend's parameters from w's vector.
static int fill_range(void *ctx, int what, size_t off, float *v, size_t n)
{
    const struct worker *w = ctx;
    CHECK(what == SYNC_PARAMS);
    memcpy(v, w->job.params + off, n * sizeof *v);
    return 0;
}

// Copies all parameters that the backend lends, block by block, to job.params.
static int gather_params(struct worker *w)
{
    struct sync_place place;
    int n = w->job.nbuckets;
    for (int b = 0; b < n; b++) {
        const struct bucket *k = &w->job.buckets[n - 1 - b];
        if (sync_take(w->sync, b, false, &place))
            return -1;
        memcpy(w->job.params + k->off, place.weights, k->n * sizeof(float));
        if (sync_give(w->sync, b))
            return -1;
    }
    return 0;
}

// Writes one bucket's gradients to the block that the backend lends, as
// backward does.
static int lent_ready(struct worker *w, int b)
{
    const struct bucket *k = &w->job.buckets[b];
    int block = w->job.nbuckets - 1 - b;
    struct sync_place place;
    if (sync_take(w->sync, block, true, &place))
        return -1;
    memcpy(place.grads, w->job.grads + k->off, k->n * sizeof(float));
    return sync_ready(w->sync, b) || sync_give(w->sync, block) ? -1 : 0;
}

int worker_begin(struct worker *w)
{
    struct sync_job job = w->job;
    if (w->settings.shard >= SHARD_PARAMS)
        job.params = NULL;
    if (w->settings.shard >= SHARD_GRADS)
        job.grads = NULL;
    w->sync = sync_open(w->fixture->ops, &job);
    if (!w->sync || !w->sync->lends_params)
        return w->sync ? 0 : -1;
    return sync_ranges(w->sync, SYNC_PARAMS, fill_range, w) || gather_params(w)
               ? -1
               : 0;
}

// The body that the workers of a world run, and its setup.
struct worker_task {
    const struct fixture *fixture;
    const struct setup *setup;
    const char *opts;
    int (*body)(struct worker *w);
};

// Runs one worker, from start to end.
static int worker_run(struct cluster *c, const void *arg, uint64_t *result)
{
    const struct worker_task *r = arg;
    struct worker w = {.fixture = r->fixture,
                       .setup = r->setup,
                       .rank = c->rank,
                       .world = c->world,
                       .cluster = c};
    int rc = worker_open(&w, r->opts);
    if (!rc && !w.setup->closed)
        rc = worker_begin(&w) || sync_bcast(w.sync) ? -1 : 0;
    if (!rc)
        rc = r->body(&w);
    if (rc)
        log_line("rank %d of %d: %s", w.rank, w.world, fail_message());
    worker_close(&w);
    *result = w.result;
    return rc;
}

bool world_here(const struct fixture *f, int world)
{
    return !f->cluster || f->cluster->world == world;
}

int world_run(const struct fixture *f, const struct setup *s,
              int (*body)(struct worker *w), uint64_t *results)
{
    char opts[CASE_TEXT];
    void *state = NULL;
    CHECK(!text_into(opts, sizeof opts, "%s%s%s", f->opts,
                     *f->opts && *s->opts ? "," : "", s->opts));
    if (f->start && f->start(s->world, opts, &state)) {
        log_line("servers: %s", fail_message());
        return s->world;
    }
    struct worker_task task = {.fixture = f,
                               .setup = s,
                               .opts = opts,
                               .body = body};
    int bad = (f->run ? f->run : forked_run)(f->cluster, s->world, s->timeout_s,
                                             worker_run, &task, results);
    if (f->stop)
        f->stop(state);
    return bad;
}

static void fill_integers(float *g, size_t n, int rank, int step, int most)
{
    uint64_t key = rng_key((uint64_t)step, (uint64_t)rank);
    for (size_t i = 0; i < n; i++)
        g[i] = (float)((int)rng_below(key, i, 2 * (uint64_t)most + 1) - most);
}

void worker_integers(struct worker *w, int step, int most)
{
    fill_integers(w->job.grads, w->job.n, w->rank, step, most);
}

void worker_normals(struct worker *w, int step)
{
    uint64_t key = rng_key((uint64_t)step, (uint64_t)w->rank + 100);
    for (size_t i = 0; i < w->job.n; i++)
        w->job.grads[i] = (float)rng_normal(key, i);
}

void worker_summed(struct worker *w, int step, int most)
{
    float *one = mem_alloc(w->job.n, sizeof *one);
    CHECK(one);
    memset(w->job.grads, 0, w->job.n * sizeof *one);
    for (int r = 0; r < w->world; r++) {
        fill_integers(one, w->job.n, r, step, most);
        for (size_t i = 0; i < w->job.n; i++)
            w->job.grads[i] += one[i];
    }
    mem_free(one);
}

static void delay(const struct worker *w, int step, int b)
{
    if (!w->setup->seed)
        return;
    uint64_t key = rng_key(w->setup->seed, (uint64_t)w->rank);
    usleep(
        (useconds_t)rng_below(key, (uint64_t)(step * CASE_BUCKETS + b), 3000));
}

int worker_ready(struct worker *w, int b)
{
    return (w->sync->lends_grads ? lent_ready(w, b) : sync_ready(w->sync, b));
}

int worker_await(struct worker *w)
{
    size_t n = w->job.n;
    return sync_await(w->sync, 0, (n + 1) / 2) || sync_await(w->sync, 0, n) ||
                   w->sync->coming
               ? -1
               : 0;
}

int worker_step(struct worker *w, int step, struct sync_out *out)
{
    for (int b = 0; b < w->job.nbuckets; b++) {
        delay(w, step, b);
        if (worker_ready(w, b))
            return -1;
    }
    struct sync_in in = {.step = step,
                         .lr = 0.01f,
                         .grad_scale = w->job.grad_scale,
                         .clip = 20};
    if (sync_step(w->sync, &in, out))
        return -1;
    return w->sync->lends_params ? gather_params(w) : worker_await(w);
}

// The bytes of this process's anonymous memory that are resident.
static size_t anonymous_bytes(void)
{
    char line[128];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %zu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

int worker_grows(struct worker *w)
{
    struct sync_out out;
    worker_normals(w, 1);
    memset(w->job.params, 0, w->job.n * sizeof(float));
    size_t before = anonymous_bytes();
    if (worker_begin(w) || sync_bcast(w->sync) || worker_step(w, 1, &out))
        return -1;
    w->result = anonymous_bytes() - before;
    return 0;
}

int worker_equals(const struct worker *w, const struct worker *local)
{
    for (size_t i = 0; i < w->job.n; i++)
        if (memcmp(&w->job.params[i], &local->job.params[i], sizeof(float)))
            return fail("parameter %zu of %zu: %.9g, local has %.9g", i,
                        w->job.n, (double)w->job.params[i],
                        (double)local->job.params[i]);
    return 0;
}

int worker_has_slots(const struct worker *w, const char *const *names, int n)
{
    if (sync_slots(w->sync) != n)
        return fail("%d slots, want %d", sync_slots(w->sync), n);
    for (int i = 0; i < n; i++) {
        char name[SYNC_SLOT_NAME];
        sync_slot_name(w->sync, i, name);
        if (strcmp(name, names[i]))
            return fail("slot %d is %s, not %s", i, name, names[i]);
    }
    return 0;
}

int oracle_open(struct worker *local, const struct worker *w)
{
    static const struct fixture alone = {.sync = "local",
                                         .ops = &sync_local,
                                         .opts = ""};
    struct cluster_config config = {.world = 1, .timeout_s = 5};
    *local = (struct worker){.fixture = &alone,
                             .setup = w->setup,
                             .world = w->world};
    if (cluster_open(&local->cluster, &cluster_local, &config) ||
        worker_open(local, "") || worker_begin(local))
        return -1;
    memcpy(local->job.params, w->job.params, w->job.n * sizeof(float));
    return 0;
}

void oracle_close(struct worker *local)
{
    worker_close(local);
    cluster_close(&local->cluster);
}
