// sequences.c - exchanges between workers that divide sequences.
//
// In a ring a thread passes keys and values on while the model computes with
// those that are here.
//
// A GPU's vectors travel by NCCL, or through pinned memory of the host
// (exchange.h). In a ring they always go through the host.

#include "train/sequences.h"

#include "base/base.h"
#include "base/zigzag.h"
#include "cluster/cluster.h"
#include "config/mesh.h"
#include "device/device.h"
#include "horovod_ring/carriers.h"
#include "model/pieces.h"
#include "train/exchange.h"
#include "train/shape.h"
#include "train/trainer.h"

enum { DEPTH = 16 }; // most exchanges that are open at once

// Sides of an exchange. A collective in place uses [PASS_KEYS][GIVEN], an
// all_to_all both sides of PASS_KEYS.
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
    struct exchange_numbers heads_numbers, keys_numbers;
    struct open_pass passes[PASSES];
    void *host[PASSES][SIDES]; // on a GPU those that are used
    int shares;                // workers of both that share memory
    int exchanges;             // of this step; numbers their spans
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

static int open_buffers(struct trainer *t, const struct model_job *job)
{
    struct sequences *s = t->sequences;
    for (int i = 0; i < host_buffers(t); i++) {
        void *host = device_host_alloc(t->dev, pieces_exchanged(job), 1);
        if (!host)
            return -1;
        s->host[i / SIDES][i % SIDES] = host;
    }
    return 0;
}

// ---- exchanges

static int make(struct trainer *t, struct group *g, const struct group_op *op)
{
    struct sequences *s = t->sequences;
    return exchange_make(t, g, op, s->host[PASS_KEYS], s->exchanges++);
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
    const struct group_op op = {.verb = GROUP_ALL_GATHER,
                                .vector = chunks(g, v, lengths, type)};
    return make(t, g, &op);
}

static int scatter(void *ctx, float *v, const size_t *lengths)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->keys;
    const struct group_op op = {.verb = GROUP_REDUCE_SCATTER,
                                .vector = chunks(g, v, lengths, DTYPE_F32)};
    return make(t, g, &op);
}

static int pass(void *ctx, enum model_passes kind, void *give, size_t given,
                void *take, size_t taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct sequences *s = t->sequences;
    struct open_pass *p = &s->passes[kind];
    int n = s->keys->size, rank = s->keys->rank;
    void *const *host = s->host[kind];
    struct group_vector out =
        group_plain(host[GIVEN] ? host[GIVEN] : give, given, type);
    uint64_t sent;
    p->in = group_plain(host[TAKEN] ? host[TAKEN] : take, taken, type);
    p->to = take;
    exchange_down(t, out.data, give, given * dtype_bytes(type));
    return group_send(s->keys, &out, (rank + 1) % n, &sent) ||
                   group_recv(s->keys, &p->in, (rank + n - 1) % n, &p->ticket)
               ? -1
               : 0;
}

static int passed(void *ctx, enum model_passes kind)
{
    struct trainer *t = ctx;
    struct sequences *s = t->sequences;
    struct open_pass *p = &s->passes[kind];
    if (exchange_await(t, s->keys, p->ticket, s->exchanges++))
        return -1;
    exchange_up(t, p->to, p->in.data, p->in.n * dtype_bytes(p->in.type));
    return 0;
}

static int exchange(void *ctx, void *give, const size_t *given, void *take,
                    const size_t *taken, enum dtype type)
{
    struct trainer *t = ctx;
    struct group *g = t->sequences->heads;
    const struct group_op op = {.verb = GROUP_ALL_TO_ALL,
                                .vector = chunks(g, take, taken, type),
                                .given = chunks(g, give, given, type)};
    return make(t, g, &op);
}

int sequences_sum(struct trainer *t, double *loss)
{
    struct sequences *s = t->sequences;
    if (!s)
        return 0;
    s->exchanges = 0;
    return (s->heads && exchange_sum(t, s->heads, &s->heads_numbers, loss,
                                     s->exchanges++)) ||
                   (s->keys && exchange_sum(t, s->keys, &s->keys_numbers, loss,
                                            s->exchanges++))
               ? -1
               : 0;
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
    const struct group_ops *carrier = exchange_carrier(t, &job, !ring);
    t->sequences->shares += carrier == &ring_shm ? workers->world : 0;
    return carrier ? group_open(carrier, &job) : NULL;
}

int sequences_open(struct trainer *t, const struct model_job *job)
{
    struct sequences *s = t->sequences;
    if (!s)
        return 0;
    bool keys = s->job.n > s->job.up, heads = s->job.up > 1;
    bool ring = s->job.over == OVER_RING;
    if (heads)
        s->heads =
            open_group(t, keys ? t->group : t->sharers, "heads", true, false);
    if (keys && (s->heads || !heads))
        s->keys = open_group(t, t->sharers, "sequences", ring, ring);
    if ((heads && (!s->heads ||
                   exchange_numbers_open(t, s->heads, &s->heads_numbers))) ||
        (keys &&
         (!s->keys || exchange_numbers_open(t, s->keys, &s->keys_numbers))))
        return -1;
    bool between = (!heads || s->heads->ops->on_device) &&
                   (!keys || s->keys->ops->on_device);
    return between ? 0 : open_buffers(t, job);
}

const char *sequences_transport(const struct trainer *t, bool heads)
{
    const struct sequences *s = t->sequences;
    const struct group *g = !s ? NULL : heads ? s->heads : s->keys;
    return g ? g->ops->name : NULL;
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
        exchange_numbers_close(t, &t->sequences->keys_numbers);
        exchange_numbers_close(t, &t->sequences->heads_numbers);
        for (int i = 0; i < PASSES * SIDES; i++) {
            void *host = t->sequences->host[i / SIDES][i % SIDES];
            if (host)
                device_host_free(t->dev, host);
        }
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
