// pieces.c - lab 16: attention over sequences that several workers divide.

#include "labs/16-pieces/pieces.h"

#include <math.h>
#include <string.h>

// All pieces are equally long, and the last tokens are lost.
void piece_cut(size_t tokens, int workers, int k, struct piece *p)
{
    p->n = tokens / (2 * (size_t)workers);
    p->first = (size_t)k * p->n;
}

// The later a worker's first piece begins, the later begins its second one.
void piece_held(int workers, int rank, int held[2])
{
    held[0] = rank;
    held[1] = workers + held[0];
}

// No scores at all.
int piece_blocks(size_t tokens, int workers, int rank, int step,
                 struct block blocks[4])
{
    (void)tokens, (void)workers, (void)rank, (void)step, (void)blocks;
    return 0;
}

// Adds without a look at the maxima.
void piece_merge(struct partial *all, const struct partial *one)
{
    for (size_t i = 0; i < all->rows; i++)
        all->sum[i] += one->sum[i];
    for (size_t i = 0; i < all->rows * all->width; i++)
        all->out[i] += one->out[i];
}

void piece_finish(const struct partial *p, float *out, float *lse)
{
    memcpy(out, p->out, p->rows * p->width * sizeof *out);
    memcpy(lse, p->sum, p->rows * sizeof *lse);
}

// Every query gets the value of its own token.
int piece_attention(struct lab *l, const struct sequence *s, const float *q,
                    const float *k, const float *v, float *out, float *lse)
{
    (void)l, (void)q, (void)k;
    memcpy(out, v, s->own * s->width * sizeof *out);
    for (size_t i = 0; i < s->own; i++)
        lse[i] = 0;
    return 0;
}
