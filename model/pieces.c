// pieces.c - attention over sequences that several workers divide.
//
// A group of workers, or a worker alone, has the queries of its own tokens, and
// needs the keys and values of all tokens before them. attention_over=gather
// gathers those of all groups; ring passes them on to the right, n - 1 times:
//
//     step      0    1    2        group 0 of 3: whose keys it has
//     keys of   0    2    1
//
// In both ways a worker merges the blocks in the order of the ring, so the
// results have the same bits. Backward needs the keys and values again. The
// gradients of a group's keys are the sum of all groups' shares: gather ends
// with a reduce-scatter; in the ring the shares of a group's keys travel around
// behind the keys, and the group adds its own at the end.
//
// The workers of a group exchange heads for tokens before and after that
// (pieces_heads.c), so each has some heads of all of the group's tokens. A
// single group has whole sequences, and exchanges no keys.

#include "model/pieces.h"

#include "model/pieces_heads.h"
#include "model/state.h"

// Buffers of the ring: keys and values that are here and that arrive; the
// gradients of this worker's own, of another's in even and in odd steps, and
// those that arrive.
enum { HERE, ARRIVE, KEYS };
enum { HOME, EVEN, ODD, ARRIVING, GRADIENTS };

static int groups_of(const struct model_job *job)
{
    return job->pieces->n / job->pieces->up;
}

static int own_group(const struct model *m)
{
    return m->job.pieces->rank / m->job.pieces->up;
}

// The tokens of a sequence, and the channels, of which this worker computes
// attention.
static size_t own_tokens(const struct model *m)
{
    return (size_t)layers_group(&m->job, own_group(m)).own;
}

static size_t own_width(const struct model *m)
{
    int D = m->job.config.channels / m->job.config.heads;
    int member = m->job.pieces->rank % m->job.pieces->up;
    return (size_t)(D * layers_heads(&m->job, member).n);
}

int pieces_longest(const struct model_job *job)
{
    if (!job->pieces)
        return job->tokens;
    return groups_of(job) == 1 ? job->pieces->tokens
                               : layers_group(job, 0).run[0].n;
}

// How many numbers the keys and values of group g's tokens are, in B sequences.
static size_t keys_of(const struct model *m, int B, int g)
{
    return (size_t)B * layers_group(&m->job, g).own * 2 * own_width(m);
}

void pieces_tables(struct model *m, struct arena *a)
{
    const struct model_pieces *p = m->job.pieces;
    m->lengths =
        p ? arena_alloc(a, 2 * (size_t)p->n, sizeof *m->lengths) : NULL;
}

// How many numbers a buffer of keys and values has: in a ring those of any
// group, else those of all.
static size_t most_keys(const struct model *m)
{
    const struct model_pieces *p = m->job.pieces;
    int tokens =
        p->over == OVER_RING ? zigzag_most(p->tokens, p->n, p->up) : p->tokens;
    return (size_t)m->job.batch * tokens * 2 * own_width(m);
}

void pieces_layout(struct model *m, struct arena *a)
{
    const struct model_job *job = &m->job;
    const struct model_pieces *p = job->pieces;
    if (p && p->up > 1)
        pieces_heads_layout(m, a);
    if (!p || groups_of(job) == 1)
        return;
    size_t size = dtype_bytes(job->precision);
    bool ring = p->over == OVER_RING;
    m->merged = arena_floats(a, job->batch * own_tokens(m) * own_width(m));
    for (int i = 0; i < (ring ? KEYS : 1); i++)
        m->kv[i] = arena_alloc(a, most_keys(m), size);
    for (int i = 0; job->train && i < (ring ? GRADIENTS : 1); i++)
        m->dkv[i] = arena_floats(a, most_keys(m));
}

size_t pieces_exchanged(const struct model_job *job)
{
    const struct model m = {.job = *job};
    size_t heads = 0, keys = 0;
    if (job->pieces->up > 1)
        heads = pieces_heads_most(&m) * 3 * dtype_bytes(job->precision);
    if (groups_of(job) > 1)
        keys = most_keys(&m) * sizeof(float); // their gradients
    return heads > keys ? heads : keys;
}

// ---- keys and values, step by step

// The group whose keys this worker has in step s.
static int whose(const struct model *m, int s)
{
    int n = groups_of(&m->job);
    return (own_group(m) - s + n) % n;
}

// Fills in m->lengths. Returns where group g's chunk begins.
static size_t cut_chunks(struct model *m, int B, int g)
{
    size_t at = 0;
    for (int i = 0; i < groups_of(&m->job); i++) {
        m->lengths[i] = keys_of(m, B, i);
        at += i < g ? m->lengths[i] : 0;
    }
    return at;
}

// The element of group g's chunk, if all chunks are here; else 0.
static size_t chunk_at(struct model *m, int B, int g)
{
    return m->job.pieces->over == OVER_RING ? 0 : cut_chunks(m, B, g);
}

static void *number_at(const struct model *m, void *v, size_t i)
{
    return (char *)v + i * dtype_bytes(m->job.precision);
}

// Copies this worker's keys and values out of qkv and, to gather them, gets
// those of all groups. Returns 0, or -1 after fail().
static int keys_begin(struct model *m, const void *qkv, int B)
{
    const struct model_pieces *p = m->job.pieces;
    size_t at = chunk_at(m, B, own_group(m)), C = own_width(m);
    size_t rows = B * own_tokens(m);
    m->k->copy_columns(number_at(m, m->kv[HERE], at), 2 * C,
                       number_at(m, (void *)qkv, C), 3 * C, rows, 2 * C);
    return p->over == OVER_RING
               ? 0
               : p->gather(p->ctx, m->kv[HERE], m->lengths, m->job.precision);
}

// *kv = the keys and values of step s. In a ring they go on to the next group
// while this worker computes. Returns 0, or -1 after fail().
static int keys_at(struct model *m, int B, int s, const void **kv)
{
    const struct model_pieces *p = m->job.pieces;
    if (p->over != OVER_RING) {
        *kv = number_at(m, m->kv[HERE], chunk_at(m, B, whose(m, s)));
        return 0;
    }
    void *here = m->kv[s % KEYS], *next = m->kv[(s + 1) % KEYS];
    if (s > 0 && p->passed(p->ctx, PASS_KEYS))
        return -1;
    *kv = here;
    return s + 1 < groups_of(&m->job)
               ? p->pass(p->ctx, PASS_KEYS, here, keys_of(m, B, whose(m, s)),
                         next, keys_of(m, B, whose(m, s + 1)), m->job.precision)
               : 0;
}

// ---- blocks

// Calls `block` for each block of this group's queries and group g's keys. Its
// own keys come first.
typedef void block_fn(void *ctx, const struct attention_runs *r);

static void each_block(const struct model *m, int g, block_fn *block, void *ctx)
{
    struct zigzag own = layers_group(&m->job, own_group(m));
    struct zigzag theirs = layers_group(&m->job, g);
    for (int q = 0; q < ZIGZAG_PIECES; q++)
        for (int k = 0; k < ZIGZAG_PIECES; k++) {
            bool first = g == own_group(m) && (k == 0 || !theirs.run[0].n);
            const struct attention_runs r = {own.run[q], theirs.run[k], own.own,
                                             theirs.own, first};
            if (r.queries.n && r.keys.n && r.keys.first <= r.queries.first)
                block(ctx, &r);
        }
}

// What the blocks of a pass read and write.
struct blocks {
    const struct model *m;
    const struct layer *l;
    const struct attention *a;
    const void *kv;         // the keys and values of a step
    const void *out, *dout; // of a pass for gradients
    float *dkv;             // the gradients of kv
};

static void block_forward(void *ctx, const struct attention_runs *r)
{
    const struct blocks *f = ctx;
    f->m->k->attention_block(f->m->merged, f->l->lse, f->l->qkv, f->kv, r,
                             f->a);
}

// out = the attention of this worker's heads, and l->lse, from l->qkv, for its
// group's tokens. Returns 0, or -1 after fail().
static int attend(struct model *m, const struct layer *l, void *out,
                  const struct attention *a)
{
    struct blocks f = {.m = m, .l = l, .a = a};
    if (groups_of(&m->job) == 1) {
        m->k->attention(out, l->lse, l->qkv, a);
        return 0;
    }
    if (keys_begin(m, l->qkv, a->B))
        return -1;
    for (int s = 0; s < groups_of(&m->job); s++) {
        if (keys_at(m, a->B, s, &f.kv))
            return -1;
        each_block(m, whose(m, s), block_forward, &f);
    }
    m->k->cast_down(out, m->merged, a->B * own_tokens(m) * a->C);
    return 0;
}

int pieces_attention(struct model *m, const struct layer *l,
                     const struct attention *a)
{
    if (m->job.pieces->up == 1)
        return attend(m, l, l->att, a);
    struct attention own = pieces_heads_own(m, a);
    return pieces_to_heads(m, m->local, l->qkv, a->B, 3) ||
                   attend(m, l, l->heads, &own) ||
                   pieces_to_tokens(m, l->heads, l->att, a->B, 1)
               ? -1
               : 0;
}

// ---- backward

static void block_backward(void *ctx, const struct attention_runs *r)
{
    const struct blocks *b = ctx;
    b->m->k->attention_block_backward(b->m->merged, b->dkv, b->dout, b->out,
                                      b->l->lse, b->l->qkv, b->kv, r, b->a);
}

// Where a step's share of the gradients of its keys goes.
static float *share_at(struct model *m, int B, int s)
{
    if (m->job.pieces->over != OVER_RING)
        return m->dkv[HOME] + chunk_at(m, B, whose(m, s));
    return m->dkv[s == 0 ? HOME : EVEN + s % 2];
}

// In a ring: adds to a step's share the shares of the groups before, which
// have arrived, and passes the sum on to the right. Returns 0, or -1 after
// fail().
static int share_on(struct model *m, int B, int s, float *share)
{
    const struct model_pieces *p = m->job.pieces;
    size_t n = keys_of(m, B, whose(m, s));
    if (p->over != OVER_RING || s == 0)
        return 0;
    if (s > 1) {
        if (p->passed(p->ctx, PASS_GRADIENTS))
            return -1;
        m->k->add_parts(share, m->dkv[ARRIVING], 1, n, true);
    }
    return p->pass(p->ctx, PASS_GRADIENTS, share, n, m->dkv[ARRIVING],
                   keys_of(m, B, whose(m, s + 1)), DTYPE_F32);
}

// Completes the gradients of this worker's own keys, which *own points to.
// Returns 0, or -1 after fail().
static int share_end(struct model *m, int B, float **own)
{
    const struct model_pieces *p = m->job.pieces;
    *own = m->dkv[HOME];
    if (p->over != OVER_RING) {
        *own += chunk_at(m, B, own_group(m));
        return p->scatter(p->ctx, m->dkv[HOME], m->lengths);
    }
    if (p->passed(p->ctx, PASS_GRADIENTS))
        return -1;
    m->k->add_parts(*own, m->dkv[ARRIVING], 1, keys_of(m, B, own_group(m)),
                    true);
    return 0;
}

// n columns of dqkv = v (rows, n), through a buffer of keys.
static void round_columns(struct model *m, void *dqkv, const float *v,
                          size_t rows, size_t n)
{
    m->k->cast_down(m->kv[HERE], v, rows * n);
    m->k->copy_columns(dqkv, 3 * own_width(m), m->kv[HERE], n, rows, n);
}

// The other way: dqkv from `out`, which attend() wrote, and its gradient.
static int attend_backward(struct model *m, const struct layer *l, void *dqkv,
                           const void *dout, const void *out,
                           const struct attention *a)
{
    struct blocks b = {.m = m, .l = l, .a = a, .out = out, .dout = dout};
    size_t rows = a->B * own_tokens(m), C = a->C;
    float *own;
    if (groups_of(&m->job) == 1) {
        m->k->attention_backward(dqkv, dout, out, l->lse, l->qkv, a);
        return 0;
    }
    if (keys_begin(m, l->qkv, a->B))
        return -1;
    m->k->zero(m->merged, rows * C);
    for (int s = 0; s < groups_of(&m->job); s++) {
        b.dkv = share_at(m, a->B, s);
        m->k->zero(b.dkv, keys_of(m, a->B, whose(m, s)));
        if (keys_at(m, a->B, s, &b.kv))
            return -1;
        each_block(m, whose(m, s), block_backward, &b);
        if (share_on(m, a->B, s, b.dkv))
            return -1;
    }
    if (share_end(m, a->B, &own))
        return -1;
    round_columns(m, dqkv, m->merged, rows, C);
    round_columns(m, number_at(m, dqkv, C), own, rows, 2 * C);
    return 0;
}

int pieces_backward(struct model *m, const struct layer *l, void *dqkv,
                    const void *dout, const struct attention *a)
{
    if (m->job.pieces->up == 1)
        return attend_backward(m, l, dqkv, dout, l->att, a);
    struct attention own = pieces_heads_own(m, a);
    return pieces_to_heads(m, dout, m->dheads, a->B, 1) ||
                   attend_backward(m, l, m->dqkv, m->dheads, l->heads, &own) ||
                   pieces_to_tokens(m, m->dqkv, dqkv, a->B, 3)
               ? -1
               : 0;
}
