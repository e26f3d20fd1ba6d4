// ask.c - lab 14: the grader's calls of the functions of lowrank.c.

#include "labs/ask.h"

#include "labs/14-lowrank/calls.h"

void lowrank_orthogonal(float *p, size_t rows, size_t rank)
{
    struct part parts[] = {{&rows, sizeof rows, PART_IN},
                           {&rank, sizeof rank, PART_IN},
                           {p, rows * rank * sizeof *p, PART_BOTH}};
    ask(NULL, LOWRANK_ORTHOGONAL, parts, 3, NULL, NULL);
}

// sum() of a worker, of whatever length the student's process sends.
static int64_t sum(void *ctx, struct lab *l, int what, const struct part *parts,
                   int n)
{
    const struct lowrank *o = ctx;
    (void)what;
    ask_wants(parts, n, 1, (size_t[]){0});
    return o->sum(o, l, parts[0].p, parts[0].bytes / sizeof(float));
}

int lowrank_exchange(struct lab *l, const struct lowrank *o, float *g,
                     float *error, float *q)
{
    size_t n = 0;
    for (int m = 0; m < o->matrices; m++)
        n += o->matrix[m].columns * o->rank;
    struct part parts[] = {{(void *)o, sizeof *o, PART_IN},
                           {g, o->n * sizeof *g, PART_BOTH},
                           {error, o->n * sizeof *error, PART_BOTH},
                           {q, n * sizeof *q, PART_BOTH}};
    return (int)ask(l, LOWRANK_EXCHANGE, parts, 4, sum, (void *)o);
}
