// zigzag.c - how n workers divide a sequence.

#include "base/zigzag.h"

static struct zigzag_run piece(int T, int pieces, int k)
{
    int more = T % pieces;
    return (struct zigzag_run){.first =
                                   k * (T / pieces) + (k < more ? k : more),
                               .n = T / pieces + (k < more)};
}

struct zigzag zigzag_of(int T, int n, int r)
{
    struct zigzag z = {.tokens = T};
    z.run[0] = piece(T, 2 * n, r);
    z.run[1] = piece(T, 2 * n, 2 * n - 1 - r);
    z.run[1].at = z.run[0].n;
    z.own = z.run[0].n + z.run[1].n;
    return z;
}

int zigzag_most(int T, int n)
{
    int first = zigzag_of(T, n, 0).own, last = zigzag_of(T, n, n - 1).own;
    return first > last ? first : last;
}
