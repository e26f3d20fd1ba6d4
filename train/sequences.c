// sequences.c - exchanges between workers that divide sequences.
//
// In a ring the group's thread passes keys and values on while the model
// computes with those that are here.

#include "train/sequences.h"

#include "base/base.h"
#include "base/zigzag.h"
#include "cluster/cluster.h"
#include "config/mesh.h"
#include "device/device.h"
#include "horovod_ring/carriers.h"
#include "sync/sync.h"
#include "telemetry/span.h"
#include "train/shape.h"
#include "train/trainer.h"

enum { DEPTH = 16 }; // most exchanges that are open at once

struct sequences {
    struct model_pieces job;
    struct zigzag own;
    struct group *group;
    uint64_t taken[PASSES]; // tickets of the passes that are open
    bool shares;            // the group is in shared memory
    int exchanges;          // of this step; numbers their spans
};

int sequences_tokens(const struct trainer *t)
{
    return t->sequences ? t->sequences->own.own : t->whole.context;
}

const struct model_pieces *sequences_job(const struct trainer *t)
{
    return t->sequences ? &t->sequences->job : NULL;
}

void sequences_pick(const struct trainer *t, int32_t *x)
{
    const struct sequences *s = t->sequences;
    int rows = t->run.batch * sequences_tokens(t);
    for (int r = 0; s && r < rows; r++)
        x[r] = x[zigzag_row(&s->own, (uint64_t)r)];
}

// ---- exchanges

// Waits for a ticket. The time is not part of the worker's computing time.
// After a failure it sleeps a moment, so that the supervisor sees the death of
// another worker, the cause, before our exit.
static int await(struct trainer *t, int rc, uint64_t ticket)
{
    struct sequences *s = t->sequences;
    uint64_t start = now_ns();
    span_begin(t->observe.lane, SPAN_JOIN, s->exchanges++);
    rc = rc || group_await(s->group, ticket) ? -1 : 0;
    span_end(t->observe.lane);
    t->join_ns += now_ns() - start;
    if (t->sync)
        sync_waited(t->sync, now_ns() - start);
    if (rc)
        cluster_let_cause_show();
    return rc;
}

// A vector with a chunk of its own length for each worker.
static struct group_vector chunks(const struct trainer *t, void *v,
                                  const size_t *lengths, enum dtype type)
{
    size_t n = 0;
    for (int w = 0; w < t->sequences->job.n; w++)
        n += lengths[w];
    struct group_vector all = group_plain(v, n, type);
    all.lengths = lengths;
    all.awaited = true;
    return all;
}

static int gather(void *ctx, void *v, const size_t *lengths, enum dtype type)
{
    struct trainer *t = ctx;
    struct group_vector all = chunks(t, v, lengths, type);
    uint64_t ticket = 0;
    int rc = group_all_gather(t->sequences->group, &all, &ticket);
    return await(t, rc, ticket);
}

static int scatter(void *ctx, float *v, const size_t *lengths)
{
    struct trainer *t = ctx;
    struct group_vector all = chunks(t, v, lengths, DTYPE_F32);
    uint64_t ticket = 0;
    int rc = group_reduce_scatter(t->sequences->group, &all, &ticket);
    return await(t, rc, ticket);
}

static int pass(void *ctx, enum model_passes kind, void *give, size_t given,
                void *take, size_t taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct sequences *s = t->sequences;
    int n = s->job.n, rank = s->job.rank;
    struct group_vector out = group_plain(give, given, type);
    struct group_vector in = group_plain(take, taken, type);
    uint64_t sent;
    return group_send(s->group, &out, (rank + 1) % n, &sent) ||
                   group_recv(s->group, &in, (rank + n - 1) % n,
                              &s->taken[kind])
               ? -1
               : 0;
}

static int passed(void *ctx, enum model_passes kind)
{
    struct trainer *t = ctx;
    return await(t, 0, t->sequences->taken[kind]);
}

static int exchange(void *ctx, void *give, const size_t *given, void *take,
                    const size_t *taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct group_vector out = chunks(t, give, given, type);
    struct group_vector in = chunks(t, take, taken, type);
    uint64_t ticket = 0;
    int rc = group_all_to_all(t->sequences->group, &out, &in, &ticket);
    return await(t, rc, ticket);
}

int sequences_sum(struct trainer *t, double *loss)
{
    struct sequences *s = t->sequences;
    if (!s)
        return 0;
    s->exchanges = 0;
    double *all = mem_alloc((size_t)s->job.n, sizeof *all);
    if (!all)
        return -1;
    struct group_vector v = group_plain(all, (size_t)s->job.n, DTYPE_F64);
    uint64_t ticket = 0;
    v.awaited = true;
    all[s->job.rank] = *loss;
    int rc = group_all_gather(s->group, &v, &ticket);
    rc = await(t, rc, ticket);
    *loss = 0;
    for (int w = 0; w < s->job.n; w++)
        *loss += all[w];
    mem_free(all);
    return rc;
}

// ---- open and close

int sequences_plan(struct trainer *t)
{
    const struct mesh *m = &t->run.mesh;
    int n = mesh_size(m, MESH_CP), rank = mesh_at(m, t->cluster->rank, MESH_CP);
    int T = t->whole.context;
    if (n == 1)
        return 0;
    if (shape_check_pieces(&t->run, &t->whole))
        return -1;
    struct sequences *s = t->sequences = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->own = zigzag_of(T, n, rank);
    s->job =
        (struct model_pieces){.n = n,
                              .rank = rank,
                              .tokens = T,
                              .over = (enum model_over)t->run.attention_over,
                              .gather = gather,
                              .scatter = scatter,
                              .pass = pass,
                              .passed = passed,
                              .exchange = exchange,
                              .ctx = t};
    return 0;
}

int sequences_open(struct trainer *t)
{
    struct sequences *s = t->sequences;
    if (!s)
        return 0;
    bool ring = s->job.over == OVER_RING;
    struct group_job job = {
        .name = "sequences",
        .cluster = t->sharers,
        .dev = t->dev,
        .grain = 1, // of sequences_sum()
        .depth = DEPTH,
        .thread = ring,
        .pairs = s->job.over != OVER_GATHER,
        .messages = ring,
        .iface = t->run.settings.iface,
    };
    const struct group_ops *carrier =
        ring_choose(&job, t->run.settings.transport == TRANSPORT_TCP);
    s->group = carrier ? group_open(carrier, &job) : NULL;
    s->shares = carrier == &ring_shm;
    return s->group ? 0 : -1;
}

int sequences_sharing(const struct trainer *t)
{
    return t->sequences && t->sequences->shares ? t->sequences->job.n : 0;
}

void sequences_close(struct trainer *t)
{
    if (t->sequences)
        group_close(&t->sequences->group);
    mem_free(t->sequences);
    t->sequences = NULL;
}

struct group_stats sequences_moved(const struct trainer *t)
{
    return t->sequences ? t->sequences->group->stats : (struct group_stats){0};
}
