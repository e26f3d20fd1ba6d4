// sequences.c - exchanges between workers that divide sequences.
//
// In a ring a thread passes keys and values on while the model computes with
// those that are here.

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
    // The workers that exchange heads, and those that exchange keys, or NULL.
    struct group *heads, *keys;
    uint64_t taken[PASSES]; // tickets of the passes that are open
    int shares;             // workers of both that share memory
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
static int await(struct trainer *t, struct group *g, int rc, uint64_t ticket)
{
    struct sequences *s = t->sequences;
    uint64_t start = now_ns();
    span_begin(t->observe.lane, SPAN_JOIN, s->exchanges++);
    rc = rc || group_await(g, ticket) ? -1 : 0;
    span_end(t->observe.lane);
    t->join_ns += now_ns() - start;
    if (t->sync)
        sync_waited(t->sync, now_ns() - start);
    if (rc)
        cluster_let_cause_show();
    return rc;
}

// A vector with a chunk of its own length for each of a group's workers.
static struct group_vector chunks(const struct group *g, void *v,
                                  const size_t *lengths, enum dtype type)
{
    size_t n = 0;
    for (int w = 0; w < g->size; w++)
        n += lengths[w];
    struct group_vector all = group_plain(v, n, type);
    all.lengths = lengths;
    all.awaited = true;
    return all;
}

static int gather(void *ctx, void *v, const size_t *lengths, enum dtype type)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->keys;
    struct group_vector all = chunks(g, v, lengths, type);
    uint64_t ticket = 0;
    int rc = group_all_gather(g, &all, &ticket);
    return await(t, g, rc, ticket);
}

static int scatter(void *ctx, float *v, const size_t *lengths)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->keys;
    struct group_vector all = chunks(g, v, lengths, DTYPE_F32);
    uint64_t ticket = 0;
    int rc = group_reduce_scatter(g, &all, &ticket);
    return await(t, g, rc, ticket);
}

static int pass(void *ctx, enum model_passes kind, void *give, size_t given,
                void *take, size_t taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct sequences *s = t->sequences;
    int n = s->keys->size, rank = s->keys->rank;
    struct group_vector out = group_plain(give, given, type);
    struct group_vector in = group_plain(take, taken, type);
    uint64_t sent;
    return group_send(s->keys, &out, (rank + 1) % n, &sent) ||
                   group_recv(s->keys, &in, (rank + n - 1) % n, &s->taken[kind])
               ? -1
               : 0;
}

static int passed(void *ctx, enum model_passes kind)
{
    struct trainer *t = ctx;
    struct sequences *s = t->sequences;
    return await(t, s->keys, 0, s->taken[kind]);
}

static int exchange(void *ctx, void *give, const size_t *given, void *take,
                    const size_t *taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->heads;
    struct group_vector out = chunks(g, give, given, type);
    struct group_vector in = chunks(g, take, taken, type);
    uint64_t ticket = 0;
    int rc = group_all_to_all(g, &out, &in, &ticket);
    return await(t, g, rc, ticket);
}

// Replaces *loss by its sum over a group, the same bits on each. Returns 0, or
// -1 after fail().
static int add_up(struct trainer *t, struct group *g, double *loss)
{
    double *all = g ? mem_alloc((size_t)g->size, sizeof *all) : NULL;
    if (!g || !all)
        return g ? -1 : 0;
    struct group_vector v = group_plain(all, (size_t)g->size, DTYPE_F64);
    uint64_t ticket = 0;
    v.awaited = true;
    all[g->rank] = *loss;
    int rc = group_all_gather(g, &v, &ticket);
    rc = await(t, g, rc, ticket);
    *loss = 0;
    for (int w = 0; w < g->size; w++)
        *loss += all[w];
    mem_free(all);
    return rc;
}

int sequences_sum(struct trainer *t, double *loss)
{
    struct sequences *s = t->sequences;
    if (!s)
        return 0;
    s->exchanges = 0;
    return add_up(t, s->heads, loss) || add_up(t, s->keys, loss) ? -1 : 0;
}

// ---- open and close

int sequences_plan(struct trainer *t)
{
    const struct mesh *m = &t->run.mesh;
    int n = mesh_pieces(m), rank = mesh_piece(m, t->cluster->rank);
    int T = t->whole.context, over = t->run.attention_over;
    if (n == 1)
        return 0;
    if (shape_check_pieces(&t->run, &t->whole))
        return -1;
    struct sequences *s = t->sequences = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->own = zigzag_of(T, n, rank);
    s->job = (struct model_pieces){.n = n,
                                   .rank = rank,
                                   .tokens = T,
                                   .up = config_exchange_heads(m, over),
                                   .over = over == ATTENTION_RING ? OVER_RING
                                                                  : OVER_GATHER,
                                   .gather = gather,
                                   .scatter = scatter,
                                   .pass = pass,
                                   .passed = passed,
                                   .exchange = exchange,
                                   .ctx = t};
    return 0;
}

static struct group *open_group(struct trainer *t, struct cluster *workers,
                                const char *name, bool pairs, bool ring)
{
    struct group_job job = {
        .name = name,
        .cluster = workers,
        .dev = t->dev,
        .grain = 1, // of sequences_sum()
        .depth = DEPTH,
        .thread = ring,
        .pairs = pairs,
        .messages = ring,
        .iface = t->run.settings.iface,
    };
    const struct group_ops *carrier =
        ring_choose(&job, t->run.settings.transport == TRANSPORT_TCP);
    t->sequences->shares += carrier == &ring_shm ? workers->world : 0;
    return carrier ? group_open(carrier, &job) : NULL;
}

int sequences_open(struct trainer *t)
{
    struct sequences *s = t->sequences;
    if (!s)
        return 0;
    bool keys = s->job.up<s->job.n, heads = s->job.up> 1;
    bool ring = s->job.over == OVER_RING;
    if (heads)
        s->heads =
            open_group(t, keys ? t->group : t->sharers, "heads", true, false);
    if (keys && (s->heads || !heads))
        s->keys = open_group(t, t->sharers, "sequences", ring, ring);
    return (s->heads || !heads) && (s->keys || !keys) ? 0 : -1;
}

int sequences_sharing(const struct trainer *t)
{
    return t->sequences ? t->sequences->shares : 0;
}

void sequences_close(struct trainer *t)
{
    if (t->sequences) {
        group_close(&t->sequences->keys);
        group_close(&t->sequences->heads);
    }
    mem_free(t->sequences);
    t->sequences = NULL;
}

struct group_stats sequences_moved(const struct trainer *t, enum mesh_axis axis)
{
    const struct sequences *s = t->sequences;
    bool heads = s && s->heads && (axis == MESH_UP) == !!t->group;
    struct group_stats sum = heads ? s->heads->stats : (struct group_stats){0};
    if (s && s->keys && axis == MESH_CP)
        group_stats_add(&sum, &s->keys->stats);
    return sum;
}
