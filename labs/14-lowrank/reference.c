// reference.c - lab 14: all P travel in one sum, and all Q in another. Vogels
// and others, "PowerSGD", 2019.

#include "labs/14-lowrank/lowrank.h"

#include <math.h>

void lowrank_orthogonal(float *p, size_t rows, size_t rank)
{
    for (size_t turn = 0; turn < rank; turn++) {
        size_t k = turn;
        double was = 0, left = 0;
        for (size_t i = 0; i < rows; i++)
            was += (double)p[i * rank + k] * (double)p[i * rank + k];
        for (size_t before = 0; before < turn; before++) {
            size_t other = before;
            double part = 0;
            for (size_t i = 0; i < rows; i++)
                part += (double)p[i * rank + k] * (double)p[i * rank + other];
            for (size_t i = 0; i < rows; i++)
                p[i * rank + k] -= (float)part * p[i * rank + other];
        }
        for (size_t i = 0; i < rows; i++)
            left += (double)p[i * rank + k] * (double)p[i * rank + k];
        double by = sqrt(left) > 1e-4 * sqrt(was) ? 1 / sqrt(left) : 0;
        for (size_t i = 0; i < rows; i++)
            p[i * rank + k] *= (float)by;
    }
}

static size_t rank_of(const struct lowrank *o, const struct matrix *m)
{
    size_t most = m->rows < m->columns ? m->rows : m->columns;
    return o->rank < most ? o->rank : most;
}

// Copies the elements in no matrix from g to `out`, or back. Returns how many
// there are.
static size_t copy_rest(const struct lowrank *o, float *g, float *out,
                        bool back)
{
    size_t n = 0, at = 0;
    for (int m = 0; m <= o->matrices; m++) {
        const struct matrix *next = &o->matrix[m];
        size_t end = m < o->matrices ? next->off : o->n;
        for (; at < end; at++, n++)
            *(back ? &g[at] : &out[n]) = *(back ? &out[n] : &g[at]);
        at += m < o->matrices ? next->rows * next->columns : 0;
    }
    return n;
}

// p (rows, r) = M q.
static void times(const struct matrix *m, size_t r, const float *g,
                  const float *q, float *p)
{
    for (size_t i = 0; i < m->rows; i++)
        for (size_t k = 0; k < r; k++) {
            float sum = 0;
            for (size_t j = 0; j < m->columns; j++)
                sum += g[m->off + i * m->columns + j] * q[j * r + k];
            p[i * r + k] = sum;
        }
}

// q (columns, r) = M^T p.
static void turned_times(const struct matrix *m, size_t r, const float *g,
                         const float *p, float *q)
{
    for (size_t j = 0; j < m->columns; j++)
        for (size_t k = 0; k < r; k++) {
            float sum = 0;
            for (size_t i = 0; i < m->rows; i++)
                sum += g[m->off + i * m->columns + j] * p[i * r + k];
            q[j * r + k] = sum;
        }
}

static bool is_empty(const float *p, size_t rows, size_t r, size_t k)
{
    for (size_t i = 0; i < rows; i++)
        if (p[i * r + k] != 0)
            return false;
    return true;
}

// q becomes the mean where p has a column; g and error become those after the
// step.
static void finish(const struct matrix *m, size_t r, const float *p,
                   const float *mean, float *q, float *g, float *error)
{
    for (size_t k = 0; k < r; k++) {
        bool empty = is_empty(p, m->rows, r, k);
        for (size_t j = 0; j < m->columns && !empty; j++)
            q[j * r + k] = mean[j * r + k];
    }
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->columns; j++) {
            size_t at = m->off + i * m->columns + j;
            float sum = 0;
            for (size_t k = 0; k < r; k++)
                sum += p[i * r + k] * q[j * r + k];
            error[at] = g[at] - sum;
            g[at] = sum;
        }
}

static int mean_of(struct lab *l, const struct lowrank *o, float *v, size_t n)
{
    int err = o->sum(o, l, v, n);
    for (size_t i = 0; i < n; i++)
        v[i] /= (float)l->workers;
    return err;
}

int lowrank_exchange(struct lab *l, const struct lowrank *o, float *g,
                     float *error, float *q)
{
    size_t np = 0, nq = 0, rest;
    for (int m = 0; m < o->matrices; m++)
        nq += o->matrix[m].columns * rank_of(o, &o->matrix[m]);
    float *p = lab_alloc(l, o->n, sizeof *p);
    float *next = lab_alloc(l, nq, sizeof *next);
    if (!p || !next)
        return -1;
    for (size_t i = 0; i < o->n; i++)
        g[i] += error[i];
    nq = 0;
    for (int m = 0; m < o->matrices; m++) {
        const struct matrix *its = &o->matrix[m];
        size_t r = rank_of(o, its);
        times(its, r, g, q + nq, p + np);
        np += its->rows * r;
        nq += its->columns * r;
    }
    rest = copy_rest(o, g, p + np, false);
    if (mean_of(l, o, p, np + rest))
        return -1;
    copy_rest(o, g, p + np, true);
    np = nq = 0;
    for (int m = 0; m < o->matrices; m++) {
        const struct matrix *its = &o->matrix[m];
        size_t r = rank_of(o, its);
        lowrank_orthogonal(p + np, its->rows, r);
        turned_times(its, r, g, p + np, next + nq);
        np += its->rows * r;
        nq += its->columns * r;
    }
    if (mean_of(l, o, next, nq))
        return -1;
    np = nq = 0;
    for (int m = 0; m < o->matrices; m++) {
        const struct matrix *its = &o->matrix[m];
        size_t r = rank_of(o, its);
        finish(its, r, p + np, next + nq, q + nq, g, error);
        np += its->rows * r;
        nq += its->columns * r;
    }
    return 0;
}
