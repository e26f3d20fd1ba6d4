// worker.c - the backends `sps` and `dps`: settings, and the five verbs.
//
//     sps   2S over the server's link, for each worker and step
//     dps   the same, spread over several links; with a server beside each
//           of n workers 2(n-1)/n S between hosts, byte for byte the ring's
//
// What a server does for each of consistency=bsp, ssp:K and asp:
//
//     bsp   one update a step, with the mean of all gradients
//     ssp   one update a push, with this worker's own gradient and 1/world of
//           the learning rate, so that a round of pushes goes as far as one
//           step; nobody is more than K steps ahead of anybody
//     asp   the same without the bound
//
// A 16-bit wire halves the gradients. By default the workers then update
// (update=worker) and the sums come back in 16 bits: half of all bytes, and
// every worker keeps exact parameters. With update=server parameters come back
// in fp32, because rounded ones would be another model.

#include "ps_worker/ps_worker.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "optim/optim.h"
#include "ps_worker/client.h"
#include "sync/update.h"

#include <math.h>
#include <string.h>

struct worker {
    struct client client;
    struct update update; // update=worker
    uint64_t sets[PS_WHATS];
};

// ---- settings

static int check_settings(const struct ps_job *j)
{
    if (j->worker_updates && j->consistency != PS_BSP)
        return fail("update=worker adds whole rounds; try: update=server, or "
                    "consistency=bsp");
    if (j->worker_updates && (j->backup || j->elastic))
        return fail("update=worker: only servers keep the state that backup= "
                    "and elastic= need; try: update=server");
    if (j->backup && (j->elastic || j->consistency != PS_BSP))
        return fail("backup=%d: goes with consistency=bsp and elastic=0",
                    j->backup);
    if (j->backup >= j->world)
        return fail("backup=%d of %d workers leaves none; try: fewer",
                    j->backup, j->world);
    return 0;
}

// How messages travel. Where a job can lose or gain workers only ZeroMQ does.
static int choose_transport(const struct sync_settings *set,
                       const struct message_ops **out)
{
    *out = set->transport == TRANSPORT_MPI ? &message_mpi : &message_zmq;
    if (*out == &message_mpi && set->elastic)
        return fail("elastic=1: with transport=mpi a worker's death ends the "
                    "job; try: transport=zmq");
    return 0;
}

static int choose_servers(const struct sync *s, struct ps_job *j)
{
    const struct sync_servers *servers = &s->job.settings->servers;
    if (!*servers->endpoints)
        return fail("%s: no server named; try: servers=tcp://host:port,.. of "
                    "each ps_server, or lockstep train, which starts them",
                    s->ops->name);
    j->servers = servers->count;
    if (s->ops == &sync_sps && j->servers != 1)
        return fail("sps: has one server, servers= names %d; try: sync=dps",
                    j->servers);
    if (j->servers > PS_MAX_WORLD)
        return fail("servers=: %d are more than %d", j->servers, PS_MAX_WORLD);
    j->beside = s->ops == &sync_dps && j->servers == j->world;
    return 0;
}

static int choose_slice(struct ps_job *j, int slice_kb)
{
    size_t most = (j->n + (size_t)j->servers - 1) / (size_t)j->servers;
    size_t slice = (size_t)slice_kb * 1024;
    if (slice > PS_MAX_SLICE)
        return fail("slice_kb=%d: a server takes at most %d", slice_kb,
                    PS_MAX_SLICE / 1024);
    slice /= sizeof(float);
    j->slice = slice < most ? slice : most;
    return 0;
}

static int choose(const struct sync *s, struct ps_job *j,
                  const struct message_ops **transport)
{
    static const enum ps_consistency kinds[] = {[CONSISTENCY_BSP] = PS_BSP,
                                                [CONSISTENCY_SSP] = PS_SSP,
                                                [CONSISTENCY_ASP] = PS_ASP};
    const struct sync_settings *set = s->job.settings;
    j->wire = set->wire;
    j->consistency = kinds[set->consistency.kind];
    j->bound = set->consistency.bound;
    j->backup = set->backup;
    j->elastic = set->elastic;
    j->priority = set->priority;
    j->worker_updates = set->update == UPDATER_WORKER;
    return choose_transport(set, transport) || choose_servers(s, j) ||
                   choose_slice(j, set->slice_kb) || check_settings(j)
               ? -1
               : 0;
}

static int worker_open(struct sync *s)
{
    struct worker *w = s->state;
    const struct cluster *cluster = s->job.cluster;
    struct ps_job j = {
        .rank = cluster->rank,
        .world = cluster->world,
        .n = s->job.n,
        .timeout_s = cluster->timeout_s,
        .optim = *s->job.optim,
        .layout = hash_bytes(s->job.buckets,
                             (size_t)s->job.nbuckets * sizeof *s->job.buckets),
    };
    const struct message_ops *transport;
    if (j.world > PS_MAX_WORLD)
        return fail("%s: %d workers are more than %d", s->ops->name, j.world,
                    PS_MAX_WORLD);
    if (choose(s, &j, &transport) ||
        (j.worker_updates && update_open(&w->update, &s->job)))
        return -1;
    if (client_open(&w->client, &j, transport, s->job.settings->servers.endpoints,
                    &s->job))
        return -1;
    s->transport = transport->name;
    s->joined = w->client.late ? w->client.round - 1 : 0;
    return 0;
}

static void worker_close(struct sync *s)
{
    struct worker *w = s->state;
    client_close(&w->client);
    update_close(&w->update, &s->job);
}

// ---- verbs

static void count(struct sync *s)
{
    struct worker *w = s->state;
    client_stats(&w->client, &s->stats);
}

// Worker 0's vector to all others, by way of the servers.
static int spread(struct worker *w, enum ps_what what, float *vector)
{
    struct client *c = &w->client;
    w->sets[what]++;
    return c->job.rank == 0 ? client_set(c, what, vector)
                            : client_pull(c, what, vector, w->sets[what], 0);
}

static int worker_bcast(struct sync *s)
{
    struct worker *w = s->state;
    struct client *c = &w->client;
    int rc = c->late ? client_pull(c, PS_PARAMS, s->job.params, 0, c->round - 1)
                     : spread(w, PS_PARAMS, s->job.params);
    count(s);
    return rc;
}

// Every worker knows the zero; one is enough to tell it.
static int worker_clock(struct sync *s, uint64_t zero_ns)
{
    struct worker *w = s->state;
    return s->job.cluster->rank ? 0 : client_clock(&w->client, zero_ns);
}

static bool pushes_early(const struct client *c)
{
    return c->job.consistency == PS_BSP && !c->job.backup;
}

static int worker_ready(struct sync *s, int b)
{
    struct worker *w = s->state;
    if (!pushes_early(&w->client))
        return 0; // goes out when the whole gradient is known
    return client_ready(&w->client, s->job.buckets[b].off);
}

static double sum_squares(const struct sync_job *job)
{
    double sum = 0;
    for (int b = 0; b < job->nbuckets; b++)
        sum += optim_sum_squares(job->grads + job->buckets[b].off,
                                 job->buckets[b].n);
    return sum;
}

// Under ssp and asp a push is a step of its own, with this worker's gradient:
// overflow test, unscale and clip are done here, before it goes out.
static void prepare_own_step(struct sync *s, const struct sync_in *in,
                             struct ps_step *step, struct sync_out *out)
{
    const struct worker *w = s->state;
    float world = (float)s->job.cluster->world;
    float scale = optim_clip_scale(sum_squares(&s->job), in->grad_scale * world,
                                   in->clip, &out->grad_norm);
    out->skipped = !isfinite(out->grad_norm);
    step->skip = out->skipped;
    step->lr = in->lr / world;
    if (!out->skipped)
        step->grad_scale =
            scale * ps_divisor(s->job.cluster->world, w->client.job.wire);
}

static int worker_step(struct sync *s, const struct sync_in *in,
                       struct sync_out *out)
{
    struct worker *w = s->state;
    struct client *c = &w->client;
    struct ps_step step = {
        .step = (uint32_t)in->step,
        .lr = in->lr,
        .grad_scale = in->grad_scale,
        .clip = in->clip,
    };
    bool own = c->job.consistency != PS_BSP;
    if (own)
        prepare_own_step(s, in, &step, out);
    if (client_round(c, &step))
        return -1;
    count(s);
    out->dropped = c->dropped;
    out->missed = (int)c->missed;
    out->lag = (int)c->result.lag;
    if (c->job.worker_updates) {
        return update_step(&w->update, &s->job, in,
                           ps_divisor(c->job.world, c->job.wire), out);
    } else if (!own && !c->dropped) {
        out->grad_norm = (float)c->result.norm;
        out->skipped = c->result.skipped;
    }
    return 0;
}

static int worker_get_state(struct sync *s, float *const *slots)
{
    struct worker *w = s->state;
    if (s->job.cluster->rank != 0)
        return 0;
    if (w->client.job.worker_updates)
        return update_get(&w->update, &s->job, slots);
    for (int i = 0; i < optim_slots(s->job.optim); i++)
        if (client_pull(&w->client, PS_SLOT0 + (enum ps_what)i, slots[i], 0, 0))
            return -1;
    count(s);
    return 0;
}

static int spread_slot(void *ctx, int i, float *vector)
{
    return spread(ctx, PS_SLOT0 + (enum ps_what)i, vector);
}

static int worker_set_state(struct sync *s, const float *const *slots)
{
    struct worker *w = s->state;
    struct client *c = &w->client;
    bool zero = s->job.cluster->rank == 0;
    if (c->late)
        return 0; // the group's state is newer
    bool own = c->job.worker_updates;
    if (own && update_set(&w->update, &s->job, slots, spread_slot, w))
        return -1;
    for (int i = 0; zero && !own && i < optim_slots(s->job.optim); i++)
        if (client_set(c, PS_SLOT0 + (enum ps_what)i, slots[i]))
            return -1;
    count(s);
    // nobody pushes before the state is there; a bsp round waits for worker 0
    return c->job.consistency == PS_BSP ? 0 : cluster_barrier(s->job.cluster);
}

const struct sync_ops sync_sps = {
    .name = "sps",
    .transport = "zmq",
    .help = "one parameter server owns parameters and optimiser",
    .state_size = sizeof(struct worker),
    .open = worker_open,
    .clock = worker_clock,
    .bcast = worker_bcast,
    .ready = worker_ready,
    .step = worker_step,
    .get_state = worker_get_state,
    .set_state = worker_set_state,
    .close = worker_close,
};

const struct sync_ops sync_dps = {
    .name = "dps",
    .transport = "zmq",
    .help = "parameters and optimiser sharded over several servers",
    .state_size = sizeof(struct worker),
    .open = worker_open,
    .clock = worker_clock,
    .bcast = worker_bcast,
    .ready = worker_ready,
    .step = worker_step,
    .get_state = worker_get_state,
    .set_state = worker_set_state,
    .close = worker_close,
};
