// ask.c - lab 16: the grader's calls of the functions of pieces.c.

#include "labs/ask.h"

#include "labs/16-pieces/calls.h"

void piece_cut(size_t tokens, int workers, int k, struct piece *p)
{
    int32_t numbers[] = {workers, k};
    struct part parts[] = {{&tokens, sizeof tokens, PART_IN},
                           {numbers, sizeof numbers, PART_IN},
                           {p, sizeof *p, PART_OUT}};
    ask(NULL, PIECE_CUT, parts, 3, NULL, NULL);
}

void piece_held(int workers, int rank, int held[2])
{
    int32_t numbers[] = {workers, rank};
    struct part parts[] = {{numbers, sizeof numbers, PART_IN},
                           {held, 2 * sizeof *held, PART_OUT}};
    ask(NULL, PIECE_HELD, parts, 2, NULL, NULL);
}

int piece_blocks(size_t tokens, int workers, int rank, int step,
                 struct block blocks[4])
{
    int32_t numbers[] = {workers, rank, step};
    struct part parts[] = {{&tokens, sizeof tokens, PART_IN},
                           {numbers, sizeof numbers, PART_IN},
                           {blocks, 4 * sizeof *blocks, PART_OUT}};
    int n = (int)ask(NULL, PIECE_BLOCKS, parts, 3, NULL, NULL);
    for (int i = 0; i < 4; i++)
        blocks[i].masked = ask_bool(&blocks[i].masked);
    return n;
}

void piece_merge(struct partial *all, const struct partial *one)
{
    size_t sizes[] = {all->rows, all->width}, row = all->rows * sizeof(float);
    struct part parts[] = {{sizes, sizeof sizes, PART_IN},
                           {all->max, row, PART_BOTH},
                           {all->sum, row, PART_BOTH},
                           {all->out, row * all->width, PART_BOTH},
                           {one->max, row, PART_IN},
                           {one->sum, row, PART_IN},
                           {one->out, row * all->width, PART_IN}};
    ask(NULL, PIECE_MERGE, parts, 7, NULL, NULL);
}

void piece_finish(const struct partial *p, float *out, float *lse)
{
    size_t sizes[] = {p->rows, p->width}, row = p->rows * sizeof(float);
    struct part parts[] = {{sizes, sizeof sizes, PART_IN},
                           {p->max, row, PART_IN},
                           {p->sum, row, PART_IN},
                           {p->out, row * p->width, PART_IN},
                           {out, row * p->width, PART_OUT},
                           {lse, row, PART_OUT}};
    ask(NULL, PIECE_FINISH, parts, 6, NULL, NULL);
}

int piece_attention(struct lab *l, const struct sequence *s, const float *q,
                    const float *k, const float *v, float *out, float *lse)
{
    size_t row = s->own * sizeof(float), all = row * s->width;
    struct part parts[] = {{(void *)s, sizeof *s, PART_IN},
                           {(void *)q, all, PART_IN},
                           {(void *)k, all, PART_IN},
                           {(void *)v, all, PART_IN},
                           {out, all, PART_OUT},
                           {lse, row, PART_OUT}};
    return (int)ask(l, PIECE_ATTENTION, parts, 6, NULL, NULL);
}
