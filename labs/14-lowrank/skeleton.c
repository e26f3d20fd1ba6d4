// lowrank.c - lab 14: a gradient matrix travels as two thin ones.

#include "labs/14-lowrank/lowrank.h"

// Leaves the columns as they are.
void lowrank_orthogonal(float *p, size_t rows, size_t rank)
{
    (void)p;
    (void)rows;
    (void)rank;
}

// Sums all elements as they are, and owes nothing.
int lowrank_exchange(struct lab *l, const struct lowrank *o, float *g,
                     float *error, float *q)
{
    (void)error;
    (void)q;
    if (o->sum(o, l, g, o->n))
        return -1;
    for (size_t i = 0; i < o->n; i++)
        g[i] /= (float)l->workers;
    return 0;
}
