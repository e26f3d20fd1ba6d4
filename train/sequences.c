// sequences.c - exchanges between workers that divide sequences.
//
// In a ring a thread passes keys and values on while the model computes with
// those that are here.
//
// A GPU's vectors travel through pinned memory of the host: a vector that is
// given is copied down before its exchange, and one that is taken is copied up
// after it.

#include "train/sequences.h"

#include "base/base.h"
#include "base/zigzag.h"
#include "cluster/cluster.h"
#include "config/mesh.h"
#include "device/device.h"
#include "horovod_ring/carriers.h"
#include "model/pieces.h"
#include "sync/sync.h"
#include "telemetry/span.h"
#include "train/shape.h"
#include "train/trainer.h"

enum { DEPTH = 16 }; // most exchanges that are open at once

// Sides of an exchange. Collectives use the buffers of PASS_KEYS; one that
// works in place uses what it gives.
enum { GIVEN, TAKEN, SIDES };

// A pass that is open.
struct open_pass {
    uint64_t ticket;
    struct group_vector in;
    void *to; // the model's memory for it
};

struct sequences {
    struct model_pieces job;
    struct zigzag own;
    // The workers that exchange heads, and those that exchange keys, or NULL.
    struct group *heads, *keys;
    struct open_pass passes[PASSES];
    char *host[PASSES * SIDES]; // on a GPU those that are used
    int shares;                 // workers of both that share memory
    int exchanges;              // of this step; numbers their spans
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

// ---- a GPU's vectors in host memory

static int host_buffers(const struct trainer *t)
{
    const struct sequences *s = t->sequences;
    return !s || device_is_host(t->dev) ? 0
           : s->job.over == OVER_RING   ? PASSES * SIDES
           : s->job.up > 1              ? SIDES
                                        : 1;
}

size_t sequences_bytes(const struct trainer *t, const struct model_job *job)
{
    int n = host_buffers(t);
    return n ? (size_t)n * pieces_exchanged(job) : 0;
}

int sequences_buffers(struct trainer *t, const struct model_job *job)
{
    struct sequences *s = t->sequences;
    for (int i = 0; i < host_buffers(t); i++) {
        s->host[i] = device_host_alloc(t->dev, pieces_exchanged(job), 1);
        if (!s->host[i])
            return -1;
    }
    return 0;
}

// The vector itself on a CPU, else its buffer.
static char *on_host(struct trainer *t, enum model_passes kind, int side,
                     void *v)
{
    return device_is_host(t->dev) ? v : t->sequences->host[kind * SIDES + side];
}

// Copy a vector to its buffer, and back, if it has one. down() waits until all
// that the model has computed is done; then buffers may be written again. Both
// return 0, or -1 after fail().
static int down(struct trainer *t, char *host, const void *v, size_t bytes)
{
    return host == v ? 0 : device_copy(t->dev, host, v, bytes);
}

static int up(struct trainer *t, void *v, const char *host, size_t bytes)
{
    return host == v ? 0
                     : device_copy_on(t->dev, DEVICE_COMPUTE, v, host, bytes);
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

static size_t bytes_of(const struct group_vector *v)
{
    return v->n * dtype_bytes(v->type);
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

// Where this worker's chunk begins, and its length, in bytes.
static struct group_chunk own_chunk(const struct group *g,
                                    const struct group_vector *v)
{
    struct group_chunk own = group_chunk_of(v, 1, g->size, g->rank);
    size_t size = dtype_bytes(v->type);
    return (struct group_chunk){own.off * size, own.n * size};
}

static int gather(void *ctx, void *v, const size_t *lengths, enum dtype type)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->keys;
    char *host = on_host(t, PASS_KEYS, GIVEN, v);
    struct group_vector all = chunks(g, host, lengths, type);
    struct group_chunk own = own_chunk(g, &all);
    uint64_t ticket = 0;
    int rc = down(t, host + own.off, (char *)v + own.off, own.n) ||
             group_all_gather(g, &all, &ticket);
    return await(t, g, rc, ticket) || up(t, v, host, bytes_of(&all)) ? -1 : 0;
}

static int scatter(void *ctx, float *v, const size_t *lengths)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->keys;
    char *host = on_host(t, PASS_KEYS, GIVEN, v);
    struct group_vector all = chunks(g, host, lengths, DTYPE_F32);
    struct group_chunk own = own_chunk(g, &all);
    uint64_t ticket = 0;
    int rc = down(t, host, v, bytes_of(&all)) ||
             group_reduce_scatter(g, &all, &ticket);
    return await(t, g, rc, ticket) ||
                   up(t, (char *)v + own.off, host + own.off, own.n)
               ? -1
               : 0;
}

static int pass(void *ctx, enum model_passes kind, void *give, size_t given,
                void *take, size_t taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct sequences *s = t->sequences;
    struct open_pass *p = &s->passes[kind];
    int n = s->keys->size, rank = s->keys->rank;
    struct group_vector out =
        group_plain(on_host(t, kind, GIVEN, give), given, type);
    uint64_t sent;
    p->in = group_plain(on_host(t, kind, TAKEN, take), taken, type);
    p->to = take;
    return down(t, out.data, give, bytes_of(&out)) ||
                   group_send(s->keys, &out, (rank + 1) % n, &sent) ||
                   group_recv(s->keys, &p->in, (rank + n - 1) % n, &p->ticket)
               ? -1
               : 0;
}

static int passed(void *ctx, enum model_passes kind)
{
    struct trainer *t = ctx;
    struct open_pass *p = &t->sequences->passes[kind];
    return await(t, t->sequences->keys, 0, p->ticket) ||
                   up(t, p->to, p->in.data, bytes_of(&p->in))
               ? -1
               : 0;
}

static int exchange(void *ctx, void *give, const size_t *given, void *take,
                    const size_t *taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->heads;
    struct group_vector out =
        chunks(g, on_host(t, PASS_KEYS, GIVEN, give), given, type);
    struct group_vector in =
        chunks(g, on_host(t, PASS_KEYS, TAKEN, take), taken, type);
    uint64_t ticket = 0;
    int rc = down(t, out.data, give, bytes_of(&out)) ||
             group_all_to_all(g, &out, &in, &ticket);
    return await(t, g, rc, ticket) || up(t, take, in.data, bytes_of(&in)) ? -1
                                                                          : 0;
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
        for (int i = 0; i < PASSES * SIDES; i++)
            if (t->sequences->host[i])
                device_host_free(t->dev, t->sequences->host[i]);
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
