// narrow.c - lab 6: sums whose numbers travel in 16 bits.

#include "labs/06-narrow/narrow.h"

// Worker c owns length(n, w, c) elements from begin(n, w, c).
static size_t begin(size_t n, int w, int c)
{
    return n * (size_t)c / (size_t)w;
}

static size_t length(size_t n, int w, int c)
{
    return n * (size_t)(c + 1) / (size_t)w - begin(n, w, c);
}

// Sends every owner its part, and receives every owner's sums, in fp32.
int lab_exchange(struct lab *l, float *v, size_t n)
{
    int w = l->workers, me = l->rank, k = 0;
    size_t own = length(n, w, me), off = begin(n, w, me);
    float *in = lab_alloc(l, own * (size_t)w, sizeof *in);
    struct lab_req r[LAB_REQUESTS];
    for (int c = 0; in && c < w; c++)
        if (c != me &&
            (lab_isend(l, c, v + begin(n, w, c), length(n, w, c) * sizeof *v,
                       &r[k++]) ||
             lab_irecv(l, c, in + (size_t)c * own, own * sizeof *in, &r[k++])))
            return -1;
    if (!in || lab_wait(l, r, k))
        return -1;
    for (size_t i = 0; i < own; i++)
        for (int c = 0; c < w; c++)
            v[off + i] += c == me ? 0 : in[(size_t)c * own + i];
    k = 0;
    for (int c = 0; c < w; c++)
        if (c != me && (lab_isend(l, c, v + off, own * sizeof *v, &r[k++]) ||
                        lab_irecv(l, c, v + begin(n, w, c),
                                  length(n, w, c) * sizeof *v, &r[k++])))
            return -1;
    return lab_wait(l, r, k);
}

// Never skips.
int lab_step(struct lab *l, struct loss_scale *s, float *g, size_t n,
             bool *skip)
{
    *skip = false;
    for (size_t i = 0; i < n; i++)
        g[i] /= s->scale * (float)l->workers;
    return lab_exchange(l, g, n);
}
