// reference.c - lab 11: sends gradients to their owners, the owners' sums of
// squares to all, and updated parameters to all. Rajbhandari et al., "ZeRO", SC
// 2020.

#include "labs/11-zero/zero.h"

struct part {
    size_t off, n;
};

static struct part part(const struct zero *z, int w, int r)
{
    size_t from = z->n * (size_t)r / (size_t)w;
    return (struct part){from, z->n * (size_t)(r + 1) / (size_t)w - from};
}

// Sends every worker its part of my gradients, and adds the others' gradients
// of my part.
static int reduce_scatter(struct lab *l, const struct zero *z, float *g,
                          float *in)
{
    int w = l->workers, me = l->rank;
    struct part own = part(z, w, me);
    for (int d = 1; d < w; d++) {
        int to = (me + d) % w, from = (me + w - d) % w;
        struct part its = part(z, w, to);
        struct lab_req r[2];
        if (lab_isend(l, to, g + its.off, its.n * sizeof *g, &r[1]) ||
            lab_irecv(l, from, in, own.n * sizeof *in, &r[0]) ||
            lab_wait(l, r, 2))
            return -1;
        float *sums = g + own.off;
        for (size_t i = 0; i < own.n; i++)
            sums[i] += in[i];
    }
    return 0;
}

static int all_gather(struct lab *l, const struct zero *z, float *p)
{
    int w = l->workers, me = l->rank;
    struct part own = part(z, w, me);
    for (int d = 1; d < w; d++) {
        int to = (me + d) % w, from = (me + w - d) % w;
        struct part its = part(z, w, from);
        struct lab_req r[2];
        if (lab_irecv(l, from, p + its.off, its.n * sizeof *p, &r[1]) ||
            lab_isend(l, to, p + own.off, own.n * sizeof *p, &r[0]) ||
            lab_wait(l, r, 2))
            return -1;
    }
    return 0;
}

// *mine becomes the sum of all workers' numbers, added in the order of the
// workers.
static int sum(struct lab *l, double *mine)
{
    int w = l->workers, me = l->rank, k = 0;
    double of[LAB_REQUESTS], total = 0;
    struct lab_req r[LAB_REQUESTS];
    of[me] = *mine;
    for (int c = 0; c < w; c++)
        if (c != me && (lab_isend(l, c, mine, sizeof *mine, &r[k++]) ||
                        lab_irecv(l, c, &of[c], sizeof of[c], &r[k++])))
            return -1;
    if (lab_wait(l, r, k))
        return -1;
    for (int c = 0; c < w; c++)
        total += of[c];
    *mine = total;
    return 0;
}

int zero_train(struct lab *l, const struct zero *z, float *p)
{
    struct part own = part(z, l->workers, l->rank);
    float *g = lab_alloc(l, z->n, sizeof *g);
    float *in = lab_alloc(l, own.n, sizeof *in);
    float *a = lab_alloc(l, own.n, sizeof *a);
    float *b = lab_alloc(l, own.n, sizeof *b);
    if (!g || !in || !a || !b)
        return -1;
    for (size_t i = 0; i < own.n; i++)
        a[i] = b[i] = 0;
    for (int step = 0, number = 1; step < z->steps; step++) {
        double squares = 0;
        z->gradients(z, l->rank, step, p, g);
        if (reduce_scatter(l, z, g, in))
            return -1;
        for (size_t i = own.off; i < own.off + own.n; i++)
            squares += (double)g[i] * (double)g[i];
        if (sum(l, &squares))
            return -1;
        bool finite = isfinite(squares);
        float scale = finite ? zero_scale(z, squares, l->workers) : 0;
        if (finite)
            z->update(p + own.off, g + own.off, a, b, own.n, scale, number);
        number += finite;
        if (all_gather(l, z, p))
            return -1;
    }
    return 0;
}
