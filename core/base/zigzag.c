// zigzag.c - how n workers divide a sequence.

#include "base/zigzag.h"

// The run of `count` pieces that begins with piece k.
static struct zigzag_run run_of(int T, int pieces, int k, int count)
{
    int most = T % pieces, each = T / pieces, end = k + count;
    int first = k * each + (k < most ? k : most);
    return (struct zigzag_run){.first = first,
                               .n = end * each + (end < most ? end : most) -
                                    first};
}

struct zigzag zigzag_group(int T, int n, int r, int count)
{
    struct zigzag z = {.tokens = T};
    z.run[0] = run_of(T, 2 * n, r, count);
    z.run[1] = run_of(T, 2 * n, 2 * n - r - count, count);
    z.run[1].at = z.run[0].n;
    z.own = z.run[0].n + z.run[1].n;
    return z;
}

struct zigzag zigzag_of(int T, int n, int r)
{
    return zigzag_group(T, n, r, 1);
}

int zigzag_most(int T, int n, int count)
{
    int first = zigzag_group(T, n, 0, count).own;
    int last = zigzag_group(T, n, n - count, count).own;
    return first > last ? first : last;
}
