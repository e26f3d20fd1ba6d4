// reference.c - lab 6: scales numbers by a power of two, rounds and sends them,
// adds them in fp32, and rounds the sums, also for the owner itself.

#include "labs/06-narrow/narrow.h"

#include <math.h>

struct part {
    size_t off, n;
};

// The elements that worker c owns.
static struct part part(size_t n, int w, int c)
{
    size_t d = (size_t)c, all = (size_t)w;
    return (struct part){n * d / all, n * (d + 1) / all - n * d / all};
}

// The largest power of two that is at most 1/w.
static float shrink(int w)
{
    float f = 1;
    while (f * (float)w > 1)
        f /= 2;
    return f;
}

// Sends out[c] to every other worker c, and receives in[c] from it. Without
// `sums`, out[c] has the numbers of c's part, and in[c] those of my part. With
// `sums`, out[c] has the sums of my part, and in[c] those of c's part.
static int swap(struct lab *l, uint16_t *const out[], uint16_t *const in[],
                size_t n, bool sums)
{
    struct lab_req r[LAB_REQUESTS];
    int k = 0;
    size_t own = part(n, l->workers, l->rank).n * 2;
    for (int c = 0; c < l->workers; c++) {
        size_t its = part(n, l->workers, c).n * 2;
        if (c != l->rank &&
            (lab_isend(l, c, out[c], sums ? own : its, &r[k++]) ||
             lab_irecv(l, c, in[c], sums ? its : own, &r[k++])))
            return -1;
    }
    return lab_wait(l, r, k);
}

// Adds the owner's numbers and all that came in, and rounds the sums.
static void add(const struct lab *l, const float *own, uint16_t *const in[],
                uint16_t *sum, size_t n, float f)
{
    for (size_t i = 0; i < n; i++) {
        float x = 0;
        for (int c = 0; c < l->workers; c++)
            x += c == l->rank ? own[i] * f : f16_to_float(in[c][i]);
        sum[i] = f16_from_float(x);
    }
}

int lab_exchange(struct lab *l, float *v, size_t n)
{
    int w = l->workers;
    float f = shrink(w);
    struct part mine = part(n, w, l->rank);
    uint16_t *half = lab_alloc(l, n, sizeof *half);
    uint16_t *in = lab_alloc(l, mine.n * (size_t)w, sizeof *in);
    uint16_t *parts[LAB_REQUESTS], *ins[LAB_REQUESTS], *sums[LAB_REQUESTS];
    if (!half || !in)
        return -1;
    for (size_t i = 0; i < n; i++)
        half[i] = f16_from_float(v[i] * f);
    for (int c = 0; c < w; c++) {
        parts[c] = half + part(n, w, c).off;
        ins[c] = in + (size_t)c * mine.n;
        sums[c] = half + mine.off;
    }
    if (swap(l, parts, ins, n, false))
        return -1;
    add(l, v + mine.off, ins, half + mine.off, mine.n, f);
    if (swap(l, sums, parts, n, true))
        return -1;
    for (size_t i = 0; i < n; i++)
        v[i] = f16_to_float(half[i]) / f;
    return 0;
}

int lab_step(struct lab *l, struct loss_scale *s, float *g, size_t n,
             bool *skip)
{
    if (lab_exchange(l, g, n))
        return -1;
    *skip = false;
    for (size_t i = 0; i < n; i++)
        *skip = *skip || !isfinite(g[i]);
    s->good = *skip ? 0 : s->good + 1;
    for (size_t i = 0; i < n; i++)
        g[i] /= s->scale * (float)l->workers;
    if (*skip)
        s->scale = fmaxf(s->scale / 2, 1);
    else if (s->good == s->window) {
        s->scale = fminf(s->scale * 2, 0x1p24f);
        s->good = 0;
    }
    return 0;
}
