// pieces_heads.c - divided sequences whose workers exchange heads for tokens
// around attention: in groups (mesh=upN), or all (attention_over=heads).
//
//     tokens of worker 0  | q k v of all heads      both's tokens | head 0
//     tokens of worker 1  | q k v of all heads  ->  both's tokens | head 1
//
// An all-to-all gives each worker of a group all of the group's tokens for some
// heads, whose attention it computes. A second one brings the results back to
// the workers that have the tokens (Jacobs et al., "DeepSpeed Ulysses", 2023).
// Of h heads worker w of a group of n has h / n, rounded down, and one more if
// w < h mod n. A layer keeps q, k, v and the result of these heads, and the
// result of this worker's tokens.

#include "model/pieces_heads.h"

#include "model/state.h"

// This worker's number in its group, and the tokens of the group.
static int own_member(const struct model *m)
{
    return m->job.pieces->rank % m->job.pieces->up;
}

static struct zigzag group_of(const struct model *m)
{
    return layers_group(&m->job, m->job.pieces->rank / m->job.pieces->up);
}

// The tokens of the group's worker w.
static struct zigzag worker_at(const struct model *m, int w)
{
    const struct model_pieces *p = m->job.pieces;
    return zigzag_of(p->tokens, p->n, p->rank - own_member(m) + w);
}

static int head_channels(const struct model *m)
{
    return m->job.config.channels / m->job.config.heads;
}

// Channels of the heads of the group's worker w.
static size_t width_of(const struct model *m, int w)
{
    return (size_t)(layers_heads(&m->job, w).n * head_channels(m));
}

// Those of this worker's heads, of its group's tokens.
static size_t of_group(const struct model *m)
{
    return m->job.batch * group_of(m).own * width_of(m, own_member(m));
}

// Those of all heads, of its own tokens.
static size_t of_own(const struct model *m)
{
    int width = part_heads(&m->job.config).n * head_channels(m);
    return (size_t)m->job.batch * m->job.tokens * width;
}

size_t pieces_heads_most(const struct model *m)
{
    size_t own = of_own(m), group = of_group(m);
    return own > group ? own : group;
}

void pieces_heads_layout(struct model *m, struct arena *a)
{
    const struct model_job *job = &m->job;
    size_t size = dtype_bytes(job->precision), all = of_group(m);
    size_t most = pieces_heads_most(m);
    m->local = arena_alloc(a, of_own(m), 3 * size);
    m->given = arena_alloc(a, most, 3 * size);
    m->taken = arena_alloc(a, most, 3 * size);
    if (job->train) {
        m->dheads = arena_alloc(a, all, size);
        m->dqkv = arena_alloc(a, all, 3 * size);
    }
}

// ---- from tokens to heads and back

static char *number_at(const struct model *m, const void *v, size_t i)
{
    return (char *)v + i * dtype_bytes(m->job.precision);
}

// Copies between a tensor `own` (B, T', k, C) of this worker's tokens and the
// chunks of the group's heads, (B, T', k, their channels) each. Sets lengths[]
// to those of the chunks.
static void cut_heads(struct model *m, void *own, void *chunks, int B, int k,
                      bool out, size_t *lengths)
{
    size_t rows = (size_t)B * m->job.tokens, C = m->width, at = 0;
    for (int w = 0; w < m->job.pieces->up; w++) {
        size_t n = width_of(m, w);
        size_t first =
            (size_t)(layers_heads(&m->job, w).first) * head_channels(m);
        for (int j = 0; j < k; j++) {
            char *chunk = number_at(m, chunks, at + j * n);
            char *part = number_at(m, own, j * C + first);
            if (out)
                m->k->copy_columns(chunk, k * n, part, k * C, rows, n);
            else
                m->k->copy_columns(part, k * C, chunk, k * n, rows, n);
        }
        lengths[w] = rows * k * n;
        at += lengths[w];
    }
}

// Copies between a tensor `all` (B, T", k, n) of n channels of the group's
// tokens and the chunks of its workers' tokens, (B, their tokens, k, n) each.
// Sets lengths[] to those of the chunks.
static void cut_tokens(struct model *m, void *all, void *chunks, int B,
                       size_t row, bool out, size_t *lengths)
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
            char *chunk = number_at(m, chunks, at + (b * z.own + run.at) * row);
            char *whole = number_at(m, all, place * row);
            m->k->copy_columns(out ? chunk : whole, row, out ? whole : chunk,
                               row, (size_t)run.n, row);
        }
        lengths[w] = (size_t)B * z.own * row;
        at += lengths[w];
    }
}

int pieces_to_heads(struct model *m, const void *own, void *heads, int B, int k)
{
    const struct model_pieces *p = m->job.pieces;
    size_t row = k * width_of(m, own_member(m)), *taken = m->lengths + p->up;
    cut_heads(m, (void *)own, m->given, B, k, true, m->lengths);
    for (int w = 0; w < p->up; w++)
        taken[w] = (size_t)B * worker_at(m, w).own * row;
    if (p->exchange(p->ctx, m->given, m->lengths, m->taken, taken,
                    m->job.precision))
        return -1;
    cut_tokens(m, heads, m->taken, B, row, false, taken);
    return 0;
}

int pieces_to_tokens(struct model *m, const void *heads, void *own, int B,
                     int k)
{
    const struct model_pieces *p = m->job.pieces;
    size_t rows = (size_t)B * m->job.tokens, *taken = m->lengths + p->up;
    cut_tokens(m, (void *)heads, m->given, B, k * width_of(m, own_member(m)),
               true, m->lengths);
    for (int w = 0; w < p->up; w++)
        taken[w] = rows * k * width_of(m, w);
    if (p->exchange(p->ctx, m->given, m->lengths, m->taken, taken,
                    m->job.precision))
        return -1;
    cut_heads(m, own, m->taken, B, k, false, taken);
    return 0;
}

struct attention pieces_heads_own(const struct model *m,
                                  const struct attention *a)
{
    struct part_share own = layers_heads(&m->job, own_member(m));
    struct attention some = *a;
    some.NH = own.n;
    some.C = own.n * head_channels(m);
    some.head += own.first;
    return some;
}
