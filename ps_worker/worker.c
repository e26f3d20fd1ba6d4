// worker.c - the strategy of parameter servers: settings, and the functions of
// struct sync_ops.
//
// Bytes in a step, for gradients of S bytes on n workers:
//
//     sps   2S cross the server's link for each worker
//     dps   the same bytes are spread over several links. With one server
//           beside each worker, a worker's host sends and receives 2(n-1)/n S,
//           as in the ring
//
// What a server does for each of consistency=bsp, ssp:K and asp:
//
//     bsp   one update for each step, with the mean of all gradients
//     ssp   one update for each push, with this worker's own gradient and
//           1/world of the learning rate, so that one push of every worker
//           moves the parameters as far as one step; no worker is more than K
//           steps ahead of another
//     asp   the same without the bound
//
// A 16-bit wire halves the bytes of gradients. By default the workers then
// update (update=worker): the sums come back in 16 bits, so all bytes are
// halved, and every worker keeps exact parameters. With update=server the
// parameters come back in fp32, because rounded parameters would be a different
// model.

#include "ps_worker/ps_worker.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "config/config.h"
#include "optim/optim.h"
#include "ps_worker/client.h"
#include "squeeze/squeeze.h"

#include <math.h>
#include <string.h>

struct worker {
    struct client client;
    uint64_t sets[PS_WHATS];
    uint64_t used; // gradients in all updates of the servers so far
};

// ---- settings

static int choose_servers(const struct sync *s, struct ps_job *j)
{
    const struct sync_servers *servers = &s->job.settings->servers;
    bool mpi = s->job.settings->transport == TRANSPORT_MPI;
    if (!*servers->endpoints)
        return fail("%s: no server named; try: servers=%s of each ps_server, "
                    "or lockstep train, which starts them",
                    s->job.backend->name,
                    mpi ? "mpi://RANK,.." : "tcp://host:port,..");
    j->servers = servers->count;
    if (s->job.backend->servers == 1 && j->servers != 1)
        return fail("%s: has one server, servers= names %d; try: sync=dps",
                    s->job.backend->name, j->servers);
    if (j->servers > PS_MAX_WORLD)
        return fail("servers= names %d servers; at most %d are possible",
                    j->servers, PS_MAX_WORLD);
    j->beside = s->job.backend->servers < 0 && j->servers == j->world &&
                !s->job.servers_apart;
    return 0;
}

static int choose(const struct sync *s, struct ps_job *j,
                  const struct message_ops **transport)
{
    const struct sync_settings *set = s->job.settings;
    j->wire = set->squeeze ? DTYPE_F32 : set->wire;
    j->consistency = set->consistency.kind;
    j->bound = set->consistency.bound;
    j->backup = set->backup;
    j->elastic = set->elastic;
    j->priority = set->priority;
    j->worker_updates = set->update == UPDATER_WORKER;
    *transport = set->transport == TRANSPORT_MPI ? &message_mpi : &message_zmq;
    if (settings_check(set) || choose_servers(s, j))
        return -1;
    if ((size_t)set->slice_kb * 1024 > PS_MAX_SLICE)
        return fail("slice_kb=%d: a server takes at most %d", set->slice_kb,
                    PS_MAX_SLICE / 1024);
    j->slice = shard_width(j->n, j->servers, set->slice_kb);
    return 0;
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
        .seed = s->job.seed,
        .layout = hash_bytes(s->job.buckets,
                             (size_t)s->job.nbuckets * sizeof *s->job.buckets),
    };
    const struct message_ops *transport;
    s->residuals = &w->client.residuals;
    ps_job_squeeze(&j, s->job.settings);
    if (j.world > PS_MAX_WORLD)
        return fail("%s: %d workers are more than %d", s->job.backend->name,
                    j.world, PS_MAX_WORLD);
    if (choose(s, &j, &transport) ||
        client_open(&w->client, &j, transport,
                    s->job.settings->servers.endpoints, &s->job))
        return -1;
    if (w->client.squeeze) {
        if (w->client.squeeze->twice && s->job.settings->feedback)
            s->residuals->own_name = RESIDUAL_OF_SUMS;
        if (residuals_open(s->residuals, s))
            return -1;
    }
    s->transport = transport->name;
    s->own_update = s->counts = !j.worker_updates;
    if (j.worker_updates)
        s->scale = 1 / ps_divisor(j.world, j.wire);
    s->late = w->client.late;
    s->joined = s->late ? w->client.round - 1 : 0;
    s->joined_updates = w->client.joined_updates;
    return 0;
}

static void worker_close(struct sync *s)
{
    struct worker *w = s->state;
    client_close(&w->client);
}

// ---- the functions of struct sync_ops

static void count(struct sync *s)
{
    struct worker *w = s->state;
    client_stats(&w->client, &s->stats);
}

static enum ps_what what_of(int slot)
{
    return slot < 0 ? PS_PARAMS : PS_SLOT0 + (enum ps_what)slot;
}

// Under bsp every update that was not skipped is one of each row. Under ssp and
// asp rows count the updates of all workers, and WELCOME has said the number.
static void count_updates(struct sync *s)
{
    struct worker *w = s->state;
    const struct client *c = &w->client;
    if (!c->late)
        return;
    s->joined_used = w->used = c->used;
    if (c->job.consistency != CONSISTENCY_BSP)
        return;
    s->joined_updates = 0;
    for (int i = 0; i < c->nremotes; i++)
        if (c->remotes[i].rows && c->remotes[i].version[0] > s->joined_updates)
            s->joined_updates = c->remotes[i].version[0];
}

// Sends worker 0's vector to all other workers through the servers. A worker
// that joins late takes the parameters that the others have reached.
static int worker_broadcast(struct sync *s, int slot, float *v)
{
    struct worker *w = s->state;
    struct client *c = &w->client;
    enum ps_what what = what_of(slot);
    uint64_t sets = ++w->sets[what], version = c->late ? c->round - 1 : 0;
    int rc = c->job.rank == 0 && !c->late
                 ? client_set(c, what, v)
                 : client_pull(c, what, v, sets, version);
    count(s);
    count_updates(s);
    return rc;
}

// Every worker knows the zero of time; only worker 0 sends it to the servers.
static int worker_clock(struct sync *s, uint64_t zero_ns)
{
    struct worker *w = s->state;
    return s->job.cluster->rank ? 0 : client_clock(&w->client, zero_ns);
}

static int worker_ready(struct sync *s, int b)
{
    struct worker *w = s->state;
    struct client *c = &w->client;
    if (c->job.consistency != CONSISTENCY_BSP || c->job.backup)
        return 0; // pushed later, when the whole gradient is known
    if (b == 0 && c->squeeze) {
        c->run_step = s->steps + 1;
        c->squeezes = residuals_begin(&c->residuals, s);
    }
    return client_ready(c, s->job.buckets[b].off);
}

static double sum_squares(const struct sync_job *job)
{
    double sum = 0;
    for (int b = 0; b < job->nbuckets; b++)
        sum += optim_sum_squares(job->grads + job->buckets[b].off,
                                 job->buckets[b].n);
    return sum;
}

// Whether an element of a finite gradient becomes infinite when it is divided
// and rounded to fp16. The norm is the root of `squares`.
static bool overflows(const struct sync_job *job, double squares, float divisor)
{
    const float most = 65520 * divisor; // from here on fp16 rounds to infinity
    if (job->settings->wire != DTYPE_F16 || squares < (double)most * most)
        return false;
    for (size_t i = 0; i < job->n; i++)
        if (fabsf(job->grads[i]) >= most)
            return true;
    return false;
}

// Under ssp and asp each push is an update with this worker's gradient only. So
// the worker does the overflow test, the unscaling and the clipping before it
// pushes.
static void prepare_own_step(struct sync *s, const struct sync_in *in,
                             struct ps_step *step, struct sync_out *out)
{
    const struct worker *w = s->state;
    float world = (float)s->job.cluster->world;
    float divisor = ps_divisor(s->job.cluster->world, w->client.job.wire);
    double squares = sum_squares(&s->job);
    float scale = optim_clip_scale(squares, in->grad_scale * world, in->clip,
                                   &out->grad_norm);
    if (overflows(&s->job, squares, divisor))
        out->grad_norm = INFINITY;
    out->skipped = !isfinite(out->grad_norm);
    step->skip = out->skipped;
    step->lr = in->lr / world;
    if (!out->skipped)
        step->grad_scale = scale * divisor;
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
    bool own = c->job.consistency != CONSISTENCY_BSP;
    if (own)
        prepare_own_step(s, in, &step, out);
    if (client_round(c, &step))
        return -1;
    count(s);
    out->dropped = c->dropped;
    out->missed = (int)c->missed;
    out->lag = (int)c->result.lag;
    out->used = (int)(c->used - w->used); // since the last step
    w->used = c->used;
    s->saver = c->job.elastic ? c->lowest : 0;
    if (s->own_update && !own && !c->dropped) {
        out->grad_norm = (float)c->result.norm;
        out->skipped = c->result.skipped;
    }
    return 0;
}

// Workers need not be at the same step, so others may wait for this one.
static int worker_work(struct sync *s, int (*work)(void *ctx), void *ctx)
{
    struct worker *w = s->state;
    return client_work(&w->client, work, ctx);
}

static void worker_updated(struct sync *s, bool skipped)
{
    struct worker *w = s->state;
    struct client *c = &w->client;
    if (!c->squeezes || skipped)
        return;
    c->updates++;
    residuals_keep(&c->residuals);
}

// ---- state

// Whether the servers have a vector of the optimiser's state, or, as slot
// `slot`, what their answers lack.
static bool on_servers(const struct sync *s, int slot, enum ps_what *what)
{
    const struct worker *w = s->state;
    bool own = slot == residuals_own_slot(s);
    *what = own ? PS_RESIDUAL : what_of(slot);
    return own ? w->client.residuals.own_name != NULL : s->own_update;
}

static bool has_state(const struct sync *s)
{
    const struct worker *w = s->state;
    return s->own_update || w->client.residuals.own_name;
}

// The worker that saves fetches the servers' state, one slot at a time.
static int save_servers(struct sync *s, sync_visit *visit, void *ctx)
{
    struct worker *w = s->state;
    int rc = 0;
    if (s->job.cluster->rank != s->saver || !has_state(s))
        return 0;
    float *v = mem_alloc(s->job.n, sizeof *v);
    if (!v)
        return -1;
    for (int i = 0; !rc && i <= residuals_own_slot(s); i++) {
        enum ps_what what;
        if (on_servers(s, i, &what))
            rc = client_pull(&w->client, what, v, 0, 0) ||
                         visit(ctx, i, 0, v, s->job.n)
                     ? -1
                     : 0;
    }
    mem_free(v);
    count(s);
    return rc;
}

static int worker_save(struct sync *s, sync_visit *visit, void *ctx)
{
    return residuals_save(s, visit, ctx) || save_servers(s, visit, ctx) ? -1
                                                                        : 0;
}

// Gives the servers their state, of which the residual is multiplied by `by`.
static int set_servers(struct sync *s, sync_visit *visit, void *ctx, float by)
{
    struct worker *w = s->state;
    int rc = 0;
    float *v = mem_alloc(s->job.n, sizeof *v);
    if (!v)
        return -1;
    for (int i = 0; rc >= 0 && i <= residuals_own_slot(s); i++) {
        enum ps_what what;
        if (!on_servers(s, i, &what))
            continue;
        rc = visit(ctx, i, 0, v, s->job.n);
        for (size_t k = 0; what == PS_RESIDUAL && k < s->job.n; k++)
            v[k] *= by;
        if (!rc) // else the checkpoint has no such slot
            rc = client_set(&w->client, what, v);
    }
    mem_free(v);
    return rc < 0 ? -1 : 0;
}

static int worker_load(struct sync *s, sync_visit *visit, void *ctx)
{
    struct worker *w = s->state;
    struct client *c = &w->client;
    // a late worker finds the state on the servers
    bool sets = s->job.cluster->rank == 0 && !c->late && has_state(s);
    float by = 1;
    if (residuals_load(s, visit, ctx, &by) ||
        (sets && set_servers(s, visit, ctx, by)))
        return -1;
    count(s);
    // no worker may push before the state is set, unless worker 0 dies; bsp
    // rounds wait for worker 0
    return c->job.consistency == CONSISTENCY_BSP
               ? 0
               : cluster_barrier(s->job.cluster);
}

static const struct sync_state_ops state = {
    .slots = residuals_slots,
    .slot_name = residuals_slot_name,
    .save = worker_save,
    .load = worker_load,
};

const struct sync_ops sync_servers = {
    .state_size = sizeof(struct worker),
    .state = &state,
    .open = worker_open,
    .clock = worker_clock,
    .broadcast = worker_broadcast,
    .ready = worker_ready,
    .step = worker_step,
    .updated = worker_updated,
    .work = worker_work,
    .close = worker_close,
};
