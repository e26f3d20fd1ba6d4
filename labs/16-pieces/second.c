// second.c - lab 16: keys and values travel in one message a step, and each
// block of scores becomes a partial result of its own, which is merged.

#include "labs/16-pieces/pieces.h"

#include <math.h>
#include <string.h>

void piece_cut(size_t tokens, int workers, int k, struct piece *p)
{
    size_t pieces = 2 * (size_t)workers, before = (size_t)k;
    size_t least = tokens / pieces, longer = tokens % pieces;
    p->first = before * least + (before < longer ? before : longer);
    p->n = least + (before < longer);
}

void piece_held(int workers, int rank, int held[2])
{
    held[0] = rank;
    held[1] = 2 * workers - 1 - rank;
}

// The worker whose keys `rank` has in a step.
static int owner(int workers, int rank, int step)
{
    return rank >= step ? rank - step : rank - step + workers;
}

static size_t length(size_t tokens, int workers, int k)
{
    struct piece p;
    piece_cut(tokens, workers, k, &p);
    return p.n;
}

int piece_blocks(size_t tokens, int workers, int rank, int step,
                 struct block blocks[4])
{
    int mine[2], theirs[2], count = 0;
    piece_held(workers, rank, mine);
    piece_held(workers, owner(workers, rank, step), theirs);
    for (int i = 0; i < 4; i++) {
        int query = mine[i / 2], key = theirs[i % 2];
        if (key <= query && length(tokens, workers, query) &&
            length(tokens, workers, key))
            blocks[count++] = (struct block){query, key, query == key};
    }
    return count;
}

// By how much a sum relative to `from` counts relative to `to`, which is not
// less.
static float factor(float from, float to)
{
    return from == -INFINITY ? 0 : expf(from - to);
}

void piece_merge(struct partial *all, const struct partial *one)
{
    for (size_t i = 0; i < all->rows; i++) {
        float top = fmaxf(all->max[i], one->max[i]);
        float a = factor(all->max[i], top), b = factor(one->max[i], top);
        float *to = all->out + i * all->width;
        const float *from = one->out + i * all->width;
        for (size_t c = 0; c < all->width; c++)
            to[c] = a * to[c] + b * from[c];
        all->sum[i] = a * all->sum[i] + b * one->sum[i];
        all->max[i] = top;
    }
}

void piece_finish(const struct partial *p, float *out, float *lse)
{
    for (size_t i = 0; i < p->rows; i++) {
        bool seen = p->sum[i] > 0;
        lse[i] = seen ? p->max[i] + logf(p->sum[i]) : -INFINITY;
        for (size_t c = i * p->width; c < (i + 1) * p->width; c++)
            out[c] = seen ? p->out[c] / p->sum[c / p->width] : 0;
    }
}

// ---- all together

static size_t own_of(size_t tokens, int workers, int rank)
{
    int held[2];
    piece_held(workers, rank, held);
    return length(tokens, workers, held[0]) + length(tokens, workers, held[1]);
}

// Where piece k begins among the tokens of the worker that has it.
static size_t place(size_t tokens, int workers, int k)
{
    return k < workers ? 0 : length(tokens, workers, 2 * workers - 1 - k);
}

static struct partial rows_of(const struct partial *p, size_t first, size_t n)
{
    return (struct partial){n, p->width, p->max + first, p->sum + first,
                            p->out + first * p->width};
}

static int make(struct lab *l, size_t rows, size_t width, struct partial *p)
{
    *p = (struct partial){rows, width, lab_alloc(l, rows, sizeof(float)),
                          lab_alloc(l, rows, sizeof(float)),
                          lab_alloc(l, rows * width, sizeof(float))};
    return p->max && p->sum && p->out ? 0 : -1;
}

static void clear(struct partial *p)
{
    for (size_t i = 0; i < p->rows; i++)
        p->max[i] = -INFINITY;
    memset(p->sum, 0, p->rows * sizeof *p->sum);
    memset(p->out, 0, p->rows * p->width * sizeof *p->out);
}

static float score(const float *q, const float *k, size_t width)
{
    float sum = 0;
    for (size_t c = 0; c < width; c++)
        sum += q[c] * k[c];
    return sum / sqrtf((float)width);
}

// The attention of a block's queries, p->rows, over its keys.
static void attend(struct partial *p, const float *q, const float *k,
                   const float *v, size_t keys, bool masked)
{
    size_t width = p->width;
    clear(p);
    for (size_t i = 0; i < p->rows; i++) {
        size_t seen = masked ? i + 1 : keys;
        const float *query = q + i * width;
        for (size_t j = 0; j < seen; j++)
            p->max[i] = fmaxf(p->max[i], score(query, k + j * width, width));
        for (size_t j = 0; j < seen; j++) {
            float e = expf(score(query, k + j * width, width) - p->max[i]);
            p->sum[i] += e;
            for (size_t c = 0; c < width; c++)
                p->out[i * width + c] += e * v[j * width + c];
        }
    }
}

int piece_attention(struct lab *l, const struct sequence *s, const float *q,
                    const float *k, const float *v, float *out, float *lse)
{
    int w = l->workers, right = (l->rank + 1) % w, left = (l->rank + w - 1) % w;
    size_t width = s->width, most = s->tokens / (size_t)w + 2;
    struct partial all, one;
    float *here = lab_alloc(l, 2 * most * width, sizeof *here);
    float *next = lab_alloc(l, 2 * most * width, sizeof *next);
    if (!here || !next || make(l, s->own, width, &all) ||
        make(l, s->own, width, &one))
        return -1;
    clear(&all);
    memcpy(here, k, s->own * width * sizeof *k);
    memcpy(here + s->own * width, v, s->own * width * sizeof *v);
    for (int step = 0; step < w; step++) {
        struct lab_req r[2];
        struct block block[4];
        int requests = 0;
        int blocks = piece_blocks(s->tokens, w, l->rank, step, block);
        size_t n = own_of(s->tokens, w, owner(w, l->rank, step));
        size_t coming = own_of(s->tokens, w, owner(w, left, step));
        size_t bytes = 2 * width * sizeof *here;
        if (step < w - 1 && n &&
            lab_isend(l, right, here, n * bytes, &r[requests++]))
            return -1;
        if (step < w - 1 && coming &&
            lab_irecv(l, left, next, coming * bytes, &r[requests++]))
            return -1;
        for (int b = 0; b < blocks; b++) {
            size_t at = place(s->tokens, w, block[b].query);
            size_t key = place(s->tokens, w, block[b].key) * width;
            size_t rows = length(s->tokens, w, block[b].query);
            struct partial to = rows_of(&all, at, rows);
            struct partial from = rows_of(&one, at, rows);
            attend(&from, q + at * width, here + key, here + n * width + key,
                   length(s->tokens, w, block[b].key), block[b].masked);
            piece_merge(&to, &from);
        }
        if (lab_wait(l, r, requests))
            return -1;
        float *spare = here;
        here = next;
        next = spare;
    }
    piece_finish(&all, out, lse);
    return 0;
}
