// reference.c - lab 15: the first matrix is cut by columns, the second one by
// rows, so that only the sums of y and dx travel. Shoeybi and others,
// "Megatron-LM", 2019.

#include "labs/15-slices/slices.h"

#include <string.h>

void slice_shares(const int *speed, int w, size_t units, size_t *share)
{
    memset(share, 0, (size_t)w * sizeof *share);
    for (size_t i = 0; i < units; i++) {
        int best = 0;
        for (int r = 1; r < w; r++) // (share + 1) / speed, without rounding
            if ((share[r] + 1) * (size_t)speed[best] <
                (share[best] + 1) * (size_t)speed[r])
                best = r;
        share[best]++;
    }
}

static size_t cut(size_t n, int w, int r)
{
    return n * (size_t)r / (size_t)w;
}

int lab_exchange(struct lab *l, float *v, size_t n)
{
    int w = l->workers, me = l->rank;
    size_t off = cut(n, w, me), own = cut(n, w, me + 1) - off;
    float *in = lab_alloc(l, own, sizeof *in);
    if (!in)
        return -1;
    for (int hop = 1; hop < w; hop++) { // to their owners
        int from = (me + hop) % w, to = (me + w - hop) % w;
        size_t there = cut(n, w, to);
        struct lab_req q[2];
        if (lab_isend(l, to, v + there, (cut(n, w, to + 1) - there) * sizeof *v,
                      &q[0]) ||
            lab_irecv(l, from, in, own * sizeof *v, &q[1]) || lab_wait(l, q, 2))
            return -1;
        for (size_t i = 0; i < own; i++)
            v[off + i] += in[i];
    }
    for (int hop = 1; hop < w; hop++) { // and the sums back
        int from = (me + hop) % w, to = (me + w - hop) % w;
        size_t there = cut(n, w, from);
        struct lab_req q[2];
        if (lab_isend(l, to, v + off, own * sizeof *v, &q[0]) ||
            lab_irecv(l, from, v + there,
                      (cut(n, w, from + 1) - there) * sizeof *v, &q[1]) ||
            lab_wait(l, q, 2))
            return -1;
    }
    return 0;
}

static float act(float z)
{
    return z > 0 ? z : 0;
}

// The slope of act() where its result is h.
static float slope(float h)
{
    return h > 0 ? 1 : 0;
}

int slice_forward(struct lab *l, const struct mlp *m, const float *x,
                  const float *a, const float *b, const float *c, float *h,
                  float *y)
{
    size_t width = m->width, own = m->own;
    for (size_t i = 0; i < m->rows; i++) {
        float *hidden = h + i * own, *out = y + i * width;
        for (size_t j = 0; j < width; j++)
            out[j] = 0;
        for (size_t k = 0; k < own; k++) {
            float z = 0;
            for (size_t j = 0; j < width; j++)
                z += x[i * width + j] * a[j * own + k];
            hidden[k] = act(z);
            for (size_t j = 0; j < width; j++)
                out[j] += hidden[k] * b[k * width + j];
        }
    }
    if (lab_exchange(l, y, m->rows * width))
        return -1;
    for (size_t i = 0; i < m->rows * width; i++)
        y[i] += c[i % width];
    return 0;
}

int slice_backward(struct lab *l, const struct mlp *m, const float *x,
                   const float *a, const float *b, const float *h,
                   const float *dy, float *dx, float *da, float *db, float *dc)
{
    size_t width = m->width, own = m->own;
    memset(dx, 0, m->rows * width * sizeof *dx);
    memset(dc, 0, width * sizeof *dc);
    for (size_t i = 0; i < own * width; i++)
        da[i] = db[i] = 0;
    for (size_t i = 0; i < m->rows; i++) {
        const float *in = x + i * width, *d = dy + i * width;
        for (size_t k = 0; k < own; k++) {
            float hidden = h[i * own + k], dz = 0;
            for (size_t j = 0; j < width; j++) {
                dz += d[j] * b[k * width + j];
                db[k * width + j] += hidden * d[j];
            }
            dz *= slope(hidden);
            for (size_t j = 0; j < width; j++) {
                dx[i * width + j] += dz * a[j * own + k];
                da[j * own + k] += dz * in[j];
            }
        }
        for (size_t j = 0; j < width; j++)
            dc[j] += d[j];
    }
    if (lab_exchange(l, dx, m->rows * width))
        return -1;
    return 0;
}
