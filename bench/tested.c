// tested.c - opens a backend, runs its steps, and checks its results.

#include "bench/tested.h"

#include "base/base.h"
#include "bench/echo.h"
#include "bench/table.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "device/device.h"
#include "horovod_ring/tcp.h"
#include "netns/netns.h"
#include "ps_server/server.h"
#include "sync/bucket.h"
#include "sync/derive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

// ---- vectors

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

// ---- servers

// The server of this worker, which runs in a thread of the worker's process: a
// parameter server, or an echo, which only sends slices back.
struct served {
    struct server_config config;
    const char *host, *iface;
    char bind[64]; // of the config
    bool echoes;
    struct server *server;
    struct echo *echo;
    char endpoint[MESSAGE_ENDPOINT];
    pthread_t thread;
    bool running;
    char why[512]; // the error; "": none
};

static void *serve(void *arg)
{
    struct served *s = arg;
    if (s->echo ? echo_run(s->echo) : server_run(s->server))
        snprintf(s->why, sizeof s->why, "%s", fail_message());
    return NULL;
}

static int listen_at(struct served *s)
{
    struct sockaddr_in address;
    char text[INET_ADDRSTRLEN];
    if (*s->host && netns_enter(s->host))
        return fail("server: host %s: %s", s->host, strerror(errno));
    if (tcp_address(&address, s->iface))
        return -1;
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    snprintf(s->bind, sizeof s->bind, "tcp://%s:0", text);
    if (s->echoes)
        return echo_open(&s->echo, s->bind, s->config.timeout_s, s->endpoint);
    s->config.bind = s->bind;
    if (server_open(&s->server, &s->config))
        return -1;
    memcpy(s->endpoint, s->server->endpoint->address, sizeof s->endpoint);
    return 0;
}

// Runs in its own thread, because it changes the cores and the network
// namespace of this thread. The server's threads inherit both: they may use all
// cores, and may be on another emulated host than the worker.
static void *start(void *arg)
{
    struct served *s = arg;
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    int rc = listen_at(s);
    int error = rc ? 0 : pthread_create(&s->thread, NULL, serve, s);
    if (error)
        fail("server: thread: %s", strerror(error));
    s->running = !rc && !error;
    if (!s->running)
        snprintf(s->why, sizeof s->why, "%s", fail_message());
    return NULL;
}

static int start_one(struct served *s)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, start, s);
    if (error)
        return fail("server: thread: %s", strerror(error));
    pthread_join(thread, NULL);
    return s->running ? 0 : fail("%s", s->why);
}

// Starts a server in a thread of each of the first `count` workers.
// e->settings.servers gets the addresses of all.
static int start_servers(struct tested *e, int count, bool echoes)
{
    const struct arena *a = e->arena;
    struct cluster *c = a->cluster;
    struct sync_servers *where = &e->settings.servers;
    char(*all)[MESSAGE_ENDPOINT] = mem_alloc((size_t)c->world, sizeof *all);
    struct served *s = e->served = mem_alloc(1, sizeof *s);
    int rc = all && s ? 0 : -1;
    if (!rc && c->rank < count) {
        *s = (struct served){.config = {.transport = &message_zmq,
                                        .curve = "",
                                        .index = c->rank,
                                        .servers = count,
                                        .world = c->world,
                                        .threads = a->threads,
                                        .timeout_s = c->timeout_s},
                             .host = count == 1 ? a->server_host : "",
                             .iface = e->settings.iface,
                             .echoes = echoes};
        rc = start_one(s);
    }
    if (!rc)
        rc = cluster_allgather(c, s->endpoint, all, sizeof *all);
    *where = (struct sync_servers){.count = count};
    for (int i = 0; !rc && i < count; i++) {
        size_t at = strlen(where->endpoints);
        rc = text_into(where->endpoints + at, sizeof where->endpoints - at,
                       "%s%s", i ? "," : "", all[i]);
    }
    mem_free(all);
    return rc;
}

// Waits until the server has ended. A parameter server ends when all workers
// have left; if the job has failed, it is stopped. An echo is always stopped.
static int end_server(struct served *s, bool failed)
{
    if (!s)
        return 0;
    if (s->running && s->echo)
        echo_stop(s->echo);
    else if (s->running && failed)
        server_stop(s->server);
    if (s->running)
        pthread_join(s->thread, NULL);
    int rc = !failed && *s->why ? fail("%s", s->why) : 0;
    server_close(&s->server);
    echo_close(&s->echo);
    mem_free(s);
    return rc;
}

// ---- a backend

int tested_open(struct tested *e, struct arena *a, const struct sync_ops *ops,
                const struct group_ops *carrier, const struct backend *row,
                const struct sync_settings *asked)
{
    *e = (struct tested){.arena = a, .settings = *asked};
    sync_derive(&e->settings, row, a->cluster->world, a->n);
    int servers = row->servers < 0 ? a->cluster->world : row->servers;
    if (servers && start_servers(e, servers, ops == &sync_echo))
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
    return end_server(e->served, failed);
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
    memset(e->arena->params, 0, e->arena->n * sizeof(float));
    for (int k = 0; k < count; k++)
        if (step(e, cost))
            return -1;
    count_wrong(e);
    return 0;
}
