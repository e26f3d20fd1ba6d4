// reference.c - lab 16: each worker has two pieces of a sequence that lie
// equally far from its middle, so all have the same work. Liu and others, "Ring
// attention with blockwise transformers", 2023; zhuzilin/ring-flash-attention.

#include "labs/16-pieces/pieces.h"

#include <math.h>
#include <string.h>

void piece_cut(size_t tokens, int workers, int k, struct piece *p)
{
    size_t pieces = 2 * (size_t)workers, at = (size_t)k;
    size_t each = tokens / pieces, more = tokens % pieces;
    p->first = at * each + (at < more ? at : more);
    p->n = each + (at < more);
}

void piece_held(int workers, int rank, int held[2])
{
    held[0] = rank;
    held[1] = 2 * workers - 1 - held[0];
}

// The worker whose keys are here.
static int whose(int workers, int rank, int step)
{
    return (rank - step + workers) % workers;
}

int piece_blocks(size_t tokens, int workers, int rank, int step,
                 struct block blocks[4])
{
    int own[2], theirs[2], n = 0;
    piece_held(workers, rank, own);
    piece_held(workers, whose(workers, rank, step), theirs);
    for (int i = 0; i < 4; i++) {
        int query = own[i / 2], key = theirs[i % 2];
        struct piece q, k;
        piece_cut(tokens, workers, query, &q);
        piece_cut(tokens, workers, key, &k);
        if (key <= query && q.n && k.n)
            blocks[n++] = (struct block){query, key, query == key};
    }
    return n;
}

void piece_merge(struct partial *all, const struct partial *one)
{
    for (size_t i = 0; i < all->rows; i++) {
        float *out = all->out + i * all->width;
        const float *more = one->out + i * all->width;
        float most = fmaxf(all->max[i], one->max[i]);
        if (most == -INFINITY) // no key at all: -INFINITY - most is NaN
            continue;
        float keep = expf(all->max[i] - most), take = expf(one->max[i] - most);
        all->max[i] = most;
        all->sum[i] = keep * all->sum[i] + take * one->sum[i];
        for (size_t c = 0; c < all->width; c++)
            out[c] = keep * out[c] + take * more[c];
    }
}

void piece_finish(const struct partial *p, float *out, float *lse)
{
    for (size_t i = 0; i < p->rows; i++) {
        float by = p->sum[i] > 0 ? 1 / p->sum[i] : 0;
        const float *sums = p->out + i * p->width;
        for (size_t c = 0; c < p->width; c++)
            out[i * p->width + c] = sums[c] * by;
        lse[i] = p->max[i] + logf(p->sum[i]);
    }
}

// ---- the ring

// A partial result of which no key has been seen. Returns 0, or -1.
static int open(struct lab *l, struct partial *p, size_t rows, size_t width)
{
    *p = (struct partial){rows, width, lab_alloc(l, rows, sizeof(float)),
                          lab_alloc(l, rows, sizeof(float)),
                          lab_alloc(l, rows * width, sizeof(float))};
    if (!p->max || !p->sum || !p->out)
        return -1;
    memset(p->sum, 0, rows * sizeof *p->sum);
    memset(p->out, 0, rows * width * sizeof *p->out);
    for (size_t i = 0; i < rows; i++)
        p->max[i] = -INFINITY;
    return 0;
}

// Rows [at, at + rows) of a partial result.
static struct partial rows_of(const struct partial *p, size_t at, size_t rows)
{
    return (struct partial){rows, p->width, p->max + at, p->sum + at,
                            p->out + at * p->width};
}

// Merges the attention over a block's keys into that of its queries.
static int attend(struct lab *l, struct partial *all, const float *q,
                  const float *k, const float *v, size_t keys, bool masked)
{
    size_t width = all->width;
    struct partial one;
    float *score = lab_alloc(l, keys, sizeof *score);
    if (!score || open(l, &one, all->rows, width))
        return -1;
    for (size_t i = 0; i < all->rows; i++) {
        size_t seen = masked ? i + 1 : keys;
        for (size_t j = 0; j < seen; j++) {
            float dot = 0;
            for (size_t c = 0; c < width; c++)
                dot += q[i * width + c] * k[j * width + c];
            score[j] = dot / sqrtf((float)width);
            one.max[i] = fmaxf(one.max[i], score[j]);
        }
        for (size_t j = 0; j < seen; j++) {
            float e = expf(score[j] - one.max[i]);
            one.sum[i] += e;
            for (size_t c = 0; c < width; c++)
                one.out[i * width + c] += e * v[j * width + c];
        }
    }
    piece_merge(all, &one);
    return 0;
}

// The tokens of a worker's first piece, or of both.
static size_t has(size_t tokens, int workers, int rank, int pieces)
{
    int held[2];
    size_t n = 0;
    piece_held(workers, rank, held);
    for (int i = 0; i < pieces; i++) {
        struct piece p;
        piece_cut(tokens, workers, held[i], &p);
        n += p.n;
    }
    return n;
}

// Computes the blocks of a step. kv: the keys and then the values of the worker
// whose keys are here.
static int compute(struct lab *l, const struct sequence *s,
                   const struct partial *all, const float *q, const float *kv,
                   int step)
{
    int w = l->workers, its = whose(w, l->rank, step);
    size_t width = s->width;
    const float *values = kv + has(s->tokens, w, its, 2) * width;
    struct block b[4];
    int n = piece_blocks(s->tokens, w, l->rank, step, b);
    for (int i = 0; i < n; i++) {
        struct piece query, key;
        piece_cut(s->tokens, w, b[i].query, &query);
        piece_cut(s->tokens, w, b[i].key, &key);
        size_t to = b[i].query < w ? 0 : has(s->tokens, w, l->rank, 1);
        size_t at = (b[i].key < w ? 0 : has(s->tokens, w, its, 1)) * width;
        struct partial rows = rows_of(all, to, query.n);
        if (attend(l, &rows, q + to * width, kv + at, values + at, key.n,
                   b[i].masked))
            return -1;
    }
    return 0;
}

int piece_attention(struct lab *l, const struct sequence *s, const float *q,
                    const float *k, const float *v, float *out, float *lse)
{
    int w = l->workers, right = (l->rank + 1) % w;
    int left = (l->rank + w - 1) % w;
    size_t n = s->own * s->width;
    size_t most = 2 * (s->tokens / (size_t)w + 2) * s->width;
    float *here = lab_alloc(l, most, sizeof *here);
    float *next = lab_alloc(l, most, sizeof *next);
    struct partial all;
    if (!here || !next || open(l, &all, s->own, s->width))
        return -1;
    memcpy(here, k, n * sizeof *k);
    memcpy(here + n, v, n * sizeof *v);
    for (int step = 0; step < w; step++) {
        struct lab_req r[2];
        bool goes_on = step + 1 < w;
        size_t row = 2 * s->width * sizeof *here;
        size_t bytes = row * has(s->tokens, w, whose(w, l->rank, step), 2);
        size_t comes = row * has(s->tokens, w, whose(w, l->rank, step + 1), 2);
        if (goes_on && (lab_isend(l, right, here, bytes, &r[0]) ||
                        lab_irecv(l, left, next, comes, &r[1])))
            return -1;
        if (compute(l, s, &all, q, here, step) ||
            (goes_on && lab_wait(l, r, 2)))
            return -1;
        float *spare = here;
        here = next;
        next = spare;
    }
    piece_finish(&all, out, lse);
    return 0;
}
