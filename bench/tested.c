// tested.c - opens a backend, runs its steps, and checks its results.

#include "bench/tested.h"

#include "base/base.h"
#include "bench/echo.h"
#include "bench/servers.h"
#include "bench/table.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "device/device.h"
#include "sync/bucket.h"
#include "sync/derive.h"

#include <string.h>

int arena_open(struct arena *a, struct cluster *c, size_t n, size_t bucket,
               int threads, const char *server_host)
{
    *a = (struct arena){.cluster = c,
                        .n = n,
                        .threads = threads,
                        .server_host = server_host};
    a->optim = (struct optim_config){.kind = OPTIM_SGD};
    a->nbuckets = bucket_cut(a->buckets, TESTED_BUCKETS, n, bucket, bucket);
    if (a->nbuckets < 0 || device_open(&a->dev, "cpu"))
        return -1;
    a->params = device_alloc(a->dev, n, sizeof(float));
    a->grads = device_alloc_shared(a->dev, n, sizeof(float));
    return a->params && a->grads ? 0 : -1;
}

void arena_close(struct arena *a)
{
    if (!a->dev)
        return;
    device_free(a->dev, a->params);
    device_free(a->dev, a->grads);
    device_close(&a->dev);
}

static int start_servers(struct tested *e, int servers, bool echo)
{
    struct cluster *c = e->arena->cluster;
    const char *host = e->arena->server_host;
    if (servers == 0)
        return 0;
    return servers_open(&e->servers, c, servers < 0 ? c->world : servers, echo,
                        e->arena->threads, servers == 1 ? host : "",
                        e->settings.iface, &e->settings.servers);
}

int tested_open(struct tested *e, struct arena *a, const struct sync_ops *ops,
                const struct group_ops *carrier, const struct backend *row,
                const struct sync_settings *asked)
{
    *e = (struct tested){.arena = a, .settings = *asked};
    sync_derive(&e->settings, row, a->cluster->world, a->n);
    if (start_servers(e, row->servers, ops == &sync_echo))
        return -1;
    const struct group_ops *carriers[] = {carrier, NULL};
    struct sync_job job = {.backend = row,
                           .carriers = carrier ? carriers : NULL,
                           .cluster = a->cluster,
                           .dev = a->dev,
                           .params = a->params,
                           .grads = a->grads,
                           .n = a->n,
                           .buckets = a->buckets,
                           .nbuckets = a->nbuckets,
                           .optim = &a->optim,
                           .settings = &e->settings};
    memset(a->params, 0, a->n * sizeof(float));
    e->sync = sync_open(ops, &job);
    return e->sync ? sync_bcast(e->sync) : -1;
}

int tested_close(struct tested *e, bool failed)
{
    sync_close(&e->sync);
    return servers_close(&e->servers, failed);
}

static int step(struct tested *e, struct cost *cost)
{
    struct arena *a = e->arena;
    struct sync_in in = {.step = ++e->steps, .lr = 1, .grad_scale = 1};
    struct sync_out out;
    float sign = e->steps % 2 ? 1 : -1;
    for (size_t i = 0; i < a->n; i++)
        a->grads[i] = sign * table_number(a->cluster->rank, i);
    // Small vectors need no barrier: their steps follow each other so closely
    // that workers stay together. Filling more than 16 KiB takes longer than
    // summing them, so such vectors need one.
    if (a->n > 1 << 12 && cluster_barrier(a->cluster))
        return -1;
    uint64_t bytes = e->sync->stats.bytes_out;
    uint64_t cpu = cpu_process_ns(), start = now_ns();
    for (int b = 0; b < a->nbuckets; b++)
        if (sync_ready(e->sync, b))
            return -1;
    if (sync_step(e->sync, &in, &out))
        return -1;
    // Some backends exchange before the update, some after it.
    uint64_t update = out.update_ended_ns - out.update_began_ns;
    cost->seconds += (double)(now_ns() - start - update) * 1e-9;
    cost->cpu_s += (double)(cpu_process_ns() - cpu) * 1e-9;
    cost->bytes_out += (double)(e->sync->stats.bytes_out - bytes);
    return 0;
}

// Compares the parameters with what they must be after this number of steps.
static void count_wrong(struct tested *e)
{
    const struct arena *a = e->arena;
    if (e->sync->ops == &sync_echo)
        return; // it does not change the parameters
    for (size_t i = 0; i < a->n; i++) {
        float sum = 0;
        for (int r = 0; e->steps % 2 && r < a->cluster->world; r++)
            sum += table_number(r, i);
        e->wrong += a->params[i] != -sum;
    }
}

int tested_run(struct tested *e, int count, struct cost *cost)
{
    CHECK(count % 2 == 0);
    memset(e->arena->params, 0, e->arena->n * sizeof(float));
    for (int k = 0; k < count; k++)
        if (step(e, cost))
            return -1;
    count_wrong(e);
    return 0;
}

int tested_check(struct tested *e)
{
    struct cost unused = {0};
    memset(e->arena->params, 0, e->arena->n * sizeof(float));
    if (step(e, &unused))
        return -1;
    count_wrong(e);
    return 0;
}
