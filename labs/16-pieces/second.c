// second.c - lab 16, another right solution: a query meets one key after the
// other, keys and values travel in messages of their own, and all that has come
// stays.

#include "labs/16-pieces/pieces.h"

#include <math.h>
#include <string.h>

// The first token of piece k.
static size_t begin(size_t tokens, size_t pieces, size_t k)
{
    size_t longer = tokens % pieces;
    return k * (tokens / pieces) + (k > longer ? longer : k);
}

void piece_cut(size_t tokens, int workers, int k, struct piece *p)
{
    size_t pieces = 2 * (size_t)workers, piece = (size_t)k;
    p->first = begin(tokens, pieces, piece);
    p->n = begin(tokens, pieces, piece + 1) - p->first;
}

void piece_held(int workers, int rank, int held[2])
{
    int last = 2 * workers - 1;
    held[0] = rank;
    held[1] = last - rank;
}

int piece_blocks(size_t tokens, int workers, int rank, int step,
                 struct block blocks[4])
{
    int mine[2], here[2], count = 0, from = rank - step;
    struct piece queries, keys;
    piece_held(workers, rank, mine);
    piece_held(workers, from < 0 ? from + workers : from, here);
    for (int a = 0; a < 2; a++) {
        piece_cut(tokens, workers, mine[a], &queries);
        for (int b = 0; b < 2; b++) {
            piece_cut(tokens, workers, here[b], &keys);
            if (queries.n == 0 || keys.n == 0 || here[b] > mine[a])
                continue;
            blocks[count].query = mine[a];
            blocks[count].key = here[b];
            blocks[count++].masked = here[b] == mine[a];
        }
    }
    return count;
}

// Row i becomes the sum of itself times `factor` and of the other result's row
// times `weight`.
static void merge_row(struct partial *all, const struct partial *one, size_t i,
                      float factor, float weight)
{
    float *out = all->out + i * all->width;
    const float *more = one->out + i * all->width;
    all->sum[i] = all->sum[i] * factor + one->sum[i] * weight;
    for (size_t c = 0; c < all->width; c++)
        out[c] = out[c] * factor + more[c] * weight;
}

void piece_merge(struct partial *all, const struct partial *one)
{
    for (size_t i = 0; i < all->rows; i++) {
        float was = all->max[i], its = one->max[i];
        if (its > was) {
            all->max[i] = its;
            merge_row(all, one, i, expf(was - its), 1);
        } else if (its > -INFINITY) {
            merge_row(all, one, i, 1, expf(its - was));
        }
    }
}

void piece_finish(const struct partial *p, float *out, float *lse)
{
    for (size_t i = 0; i < p->rows; i++) {
        bool some = p->max[i] > -INFINITY;
        lse[i] = some ? logf(p->sum[i]) + p->max[i] : -INFINITY;
        for (size_t c = 0; c < p->width; c++)
            out[i * p->width + c] =
                some ? p->out[i * p->width + c] / p->sum[i] : 0;
    }
}

// ---- the ring

// Where a piece begins among the tokens of its worker.
static size_t place(size_t tokens, int w, int piece)
{
    for (int r = 0; r < w; r++) {
        int held[2];
        struct piece low;
        piece_held(w, r, held);
        piece_cut(tokens, w, held[0], &low);
        if (held[1] == piece)
            return low.n;
    }
    return 0;
}

static size_t tokens_of(size_t tokens, int w, int rank)
{
    int held[2];
    struct piece low, high;
    piece_held(w, rank, held);
    piece_cut(tokens, w, held[0], &low);
    piece_cut(tokens, w, held[1], &high);
    return low.n + high.n;
}

// A query meets keys one by one.
static void meet(struct partial *row, const float *q, const float *k,
                 const float *v, size_t keys)
{
    size_t width = row->width;
    float root = sqrtf((float)width);
    for (size_t j = 0; j < keys; j++, k += width, v += width) {
        float score = 0, sum = 1;
        for (size_t c = 0; c < width; c++)
            score += q[c] * k[c];
        score /= root;
        struct partial one = {1, width, &score, &sum, (float *)v};
        piece_merge(row, &one);
    }
}

static int step_of(const struct sequence *s, int w, int rank, int step,
                   struct partial *all, const float *q, const float *k,
                   const float *v)
{
    size_t width = s->width;
    struct block b[4];
    int n = piece_blocks(s->tokens, w, rank, step, b);
    for (int i = 0; i < n; i++) {
        struct piece query, key;
        piece_cut(s->tokens, w, b[i].query, &query);
        piece_cut(s->tokens, w, b[i].key, &key);
        size_t mine = place(s->tokens, w, b[i].query);
        size_t theirs = place(s->tokens, w, b[i].key) * width;
        for (size_t t = 0; t < query.n; t++) {
            size_t at = mine + t;
            struct partial row = {1, width, all->max + at, all->sum + at,
                                  all->out + at * width};
            meet(&row, q + at * width, k + theirs, v + theirs,
                 b[i].masked ? t + 1 : key.n);
        }
    }
    return n;
}

int piece_attention(struct lab *l, const struct sequence *s, const float *q,
                    const float *k, const float *v, float *out, float *lse)
{
    int w = l->workers, me = l->rank;
    size_t width = s->width, own = s->own;
    struct partial all = {own, width, lab_alloc(l, own, sizeof(float)),
                          lab_alloc(l, own, sizeof(float)),
                          lab_alloc(l, own * width, sizeof(float))};
    if (!all.max || !all.sum || !all.out)
        return -1;
    for (size_t i = 0; i < own; i++) {
        all.max[i] = -INFINITY;
        all.sum[i] = 0;
    }
    memset(all.out, 0, own * width * sizeof *all.out);
    for (int step = 0; step < w; step++) {
        step_of(s, w, me, step, &all, q, k, v);
        if (step == w - 1)
            break;
        size_t has = tokens_of(s->tokens, w, (me + w - step) % w) * width;
        size_t comes = tokens_of(s->tokens, w, (me + w - step - 1) % w) * width;
        float *next_k = lab_alloc(l, comes, sizeof *next_k);
        float *next_v = lab_alloc(l, comes, sizeof *next_v);
        struct lab_req r[4];
        int right = (me + 1) % w, left = (me + w - 1) % w;
        if (!next_k || !next_v ||
            lab_isend(l, right, k, has * sizeof *k, &r[0]) ||
            lab_isend(l, right, v, has * sizeof *v, &r[1]) ||
            lab_irecv(l, left, next_k, comes * sizeof *k, &r[2]) ||
            lab_irecv(l, left, next_v, comes * sizeof *v, &r[3]) ||
            lab_wait(l, r, 4))
            return -1;
        k = next_k;
        v = next_v;
    }
    piece_finish(&all, out, lse);
    return 0;
}
