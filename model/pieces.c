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
// Before and after that the workers of a group exchange heads for tokens: in
// groups (mesh=upN), or all (attention_over=heads).
//
//     tokens of worker 0  | q k v of all heads      both's tokens | head 0
//     tokens of worker 1  | q k v of all heads  ->  both's tokens | head 1
//
// An all-to-all gives each worker of a group all of the group's tokens for some
// heads, whose attention it computes. A second one brings the results back to
// the workers that have the tokens (Jacobs et al., "DeepSpeed Ulysses", 2023).
// Of h heads worker w of a group of n has h / n, rounded down, and one more if
// w < h mod n. A layer keeps q, k, v and the result of these heads, and the
// result of this worker's tokens. A single group has whole sequences, and
// exchanges no keys.

#include "model/pieces.h"

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

// This worker's group, and its number in it.
static int own_group(const struct model *m)
{
    return m->job.pieces->rank / m->job.pieces->up;
}

static int own_member(const struct model *m)
{
    return m->job.pieces->rank % m->job.pieces->up;
}

// The tokens of the group, and of its worker w.
static struct zigzag group_of(const struct model *m)
{
    return layers_group(&m->job, own_group(m));
}

static struct zigzag worker_at(const struct model *m, int w)
{
    const struct model_pieces *p = m->job.pieces;
    return zigzag_of(p->tokens, p->n, p->rank - own_member(m) + w);
}

// The channels of the heads of the group's worker w, and of this worker.
static size_t width_of(const struct model *m, int w)
{
    int D = m->job.config.channels / m->job.config.heads;
    return (size_t)(D * layers_heads(&m->job, w).n);
}

static size_t own_width(const struct model *m)
{
    return width_of(m, own_member(m));
}

// The numbers of q for attention, of the group's tokens and this worker's
// heads, and the most that an exchange of heads gives or takes of q: those, or
// those of the worker's own tokens and all heads.
static size_t of_group(const struct model *m)
{
    return m->job.batch * group_of(m).own * own_width(m);
}

static size_t of_own(const struct model *m)
{
    int D = m->job.config.channels / m->job.config.heads;
    int width = D * part_heads(&m->job.config).n;
    return (size_t)m->job.batch * m->job.tokens * width;
}

static size_t most_exchanged(const struct model *m)
{
    size_t own = of_own(m), group = of_group(m);
    return own > group ? own : group;
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
    size_t size = dtype_bytes(job->precision);
    if (p && p->up > 1) {
        m->local = arena_alloc(a, of_own(m), 3 * size);
        m->given = arena_alloc(a, most_exchanged(m), 3 * size);
        m->taken = arena_alloc(a, most_exchanged(m), 3 * size);
        if (job->train) {
            m->dheads = arena_alloc(a, of_group(m), size);
            m->dqkv = arena_alloc(a, of_group(m), 3 * size);
        }
    }
    if (!p || groups_of(job) == 1)
        return;
    bool ring = p->over == OVER_RING;
    m->merged = arena_floats(a, of_group(m));
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
        heads = most_exchanged(&m) * 3 * dtype_bytes(job->precision);
    if (groups_of(job) > 1)
        keys = most_keys(&m) * sizeof(float); // their gradients
    return heads > keys ? heads : keys;
}

static void *number_at(const struct model *m, const void *v, size_t i)
{
    return (char *)v + i * dtype_bytes(m->job.precision);
}

// ---- from tokens to heads and back

// Copies between a tensor `own` (B, T', k, C) of this worker's tokens and the
// chunks of the group's heads, (B, T', k, their channels) each.
static void cut_heads(const struct model *m, void *own, void *chunks, int B,
                      int k, bool out)
{
    size_t rows = (size_t)B * m->job.tokens, C = m->width, first = 0;
    for (int w = 0; w < m->job.pieces->up; w++) {
        size_t n = width_of(m, w);
        for (int j = 0; j < k; j++) {
            void *chunk = number_at(m, chunks, rows * k * first + j * n);
            void *part = number_at(m, own, j * C + first);
            if (out)
                m->k->copy_columns(chunk, k * n, part, k * C, rows, n);
            else
                m->k->copy_columns(part, k * C, chunk, k * n, rows, n);
        }
        first += n;
    }
}

// Copies between a tensor `all` of the group's tokens, (B, T", row) numbers,
// and the chunks of its workers' tokens, (B, their tokens, row) each.
static void cut_tokens(const struct model *m, void *all, void *chunks, int B,
                       size_t row, bool out)
{
    struct zigzag group = group_of(m);
    size_t at = 0;
    for (int w = 0; w < m->job.pieces->up; w++) {
        struct zigzag z = worker_at(m, w);
        for (int i = 0; i < B * ZIGZAG_PIECES; i++) {
            size_t b = i / ZIGZAG_PIECES;
            struct zigzag_run run = z.run[i % ZIGZAG_PIECES];
            struct zigzag_run in = group.run[i % ZIGZAG_PIECES];
            size_t place = b * group.own + in.at + run.first - in.first;
            void *chunk = number_at(m, chunks, at + (b * z.own + run.at) * row);
            void *whole = number_at(m, all, place * row);
            m->k->copy_columns(out ? chunk : whole, row, out ? whole : chunk,
                               row, (size_t)run.n, row);
        }
        at += (size_t)B * z.own * row;
    }
}

// With `there`: heads (B, T", k, n) = the n channels of this worker's heads, of
// its group's tokens, from own (B, T', k, C) of the group's workers. Else the
// other way. Returns 0, or -1 after fail().
static int exchange_heads(struct model *m, void *own, void *heads, int B, int k,
                          bool there)
{
    const struct model_pieces *p = m->job.pieces;
    size_t row = k * own_width(m), *given = m->lengths, *taken = given + p->up;
    for (int w = 0; w < p->up; w++) {
        size_t of_group = (size_t)B * m->job.tokens * k * width_of(m, w);
        size_t of_tokens = (size_t)B * worker_at(m, w).own * row;
        given[w] = there ? of_group : of_tokens;
        taken[w] = there ? of_tokens : of_group;
    }
    if (there)
        cut_heads(m, own, m->given, B, k, true);
    else
        cut_tokens(m, heads, m->given, B, row, true);
    if (p->exchange(p->ctx, m->given, given, m->taken, taken, m->job.precision))
        return -1;
    if (there)
        cut_tokens(m, heads, m->taken, B, row, false);
    else
        cut_heads(m, own, m->taken, B, k, false);
    return 0;
}

// The attention of this worker's heads.
static struct attention of_heads(const struct model *m,
                                 const struct attention *a)
{
    struct part_share own = layers_heads(&m->job, own_member(m));
    struct attention some = *a;
    some.NH = own.n;
    some.C = own_width(m);
    some.head += own.first;
    return some;
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

// Copies this worker's keys and values out of qkv and, to gather them, gets
// those of all groups. Returns 0, or -1 after fail().
static int keys_begin(struct model *m, const void *qkv, int B)
{
    const struct model_pieces *p = m->job.pieces;
    size_t at = chunk_at(m, B, own_group(m)), C = own_width(m);
    size_t rows = (size_t)B * group_of(m).own;
    m->k->copy_columns(number_at(m, m->kv[HERE], at), 2 * C,
                       number_at(m, qkv, C), 3 * C, rows, 2 * C);
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

// What the blocks of a pass read and write.
struct blocks {
    const struct model *m;
    const struct layer *l;
    const struct attention *a;
    const void *kv;         // the keys and values of a step
    const void *out, *dout; // of a pass for gradients; else NULL
    float *dkv;             // the gradients of kv
};

// Computes each block of this group's queries and group g's keys, or its
// gradients. The group's own keys come first.
static void each_block(const struct blocks *f, int g)
{
    const struct model *m = f->m;
    const struct layer *l = f->l;
    struct zigzag own = group_of(m), theirs = layers_group(&m->job, g);
    for (int q = 0; q < ZIGZAG_PIECES; q++)
        for (int k = 0; k < ZIGZAG_PIECES; k++) {
            bool first = g == own_group(m) && (k == 0 || !theirs.run[0].n);
            const struct attention_runs r = {own.run[q], theirs.run[k], own.own,
                                             theirs.own, first};
            if (!r.queries.n || !r.keys.n || r.keys.first > r.queries.first)
                continue;
            if (f->dout)
                m->k->attention_block_backward(m->merged, f->dkv, f->dout,
                                               f->out, l->lse, l->qkv, f->kv,
                                               &r, f->a);
            else
                m->k->attention_block(m->merged, l->lse, l->qkv, f->kv, &r,
                                      f->a);
        }
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
        each_block(&f, whose(m, s));
    }
    m->k->cast_down(out, m->merged, (size_t)a->B * group_of(m).own * a->C);
    return 0;
}

int pieces_attention(struct model *m, const struct layer *l,
                     const struct attention *a)
{
    if (m->job.pieces->up == 1)
        return attend(m, l, l->att, a);
    struct attention own = of_heads(m, a);
    return exchange_heads(m, m->local, l->qkv, a->B, 3, true) ||
                   attend(m, l, l->heads, &own) ||
                   exchange_heads(m, l->att, l->heads, a->B, 1, false)
               ? -1
               : 0;
}

// ---- backward

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
    size_t rows = (size_t)a->B * group_of(m).own, C = a->C;
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
        each_block(&b, whose(m, s));
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
    struct attention own = of_heads(m, a);
    return exchange_heads(m, (void *)dout, m->dheads, a->B, 1, true) ||
                   attend_backward(m, l, m->dqkv, m->dheads, l->heads, &own) ||
                   exchange_heads(m, dqkv, m->dqkv, a->B, 3, false)
               ? -1
               : 0;
}
