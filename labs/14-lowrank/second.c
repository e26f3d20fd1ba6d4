// second.c - lab 14, another right solution: marks the elements that are in a
// matrix, and has one product for both sums.

#include "labs/14-lowrank/lowrank.h"

#include <math.h>
#include <string.h>

static double dot(const float *a, const float *b, size_t n, size_t step)
{
    double sum = 0;
    for (size_t i = 0; i < n * step; i += step)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

void lowrank_orthogonal(float *p, size_t rows, size_t rank)
{
    for (float *c = p; c < p + rank; c++) {
        double before = sqrt(dot(c, c, rows, rank));
        for (float *o = p; o < c; o++) {
            float along = (float)dot(c, o, rows, rank);
            for (size_t i = 0; i < rows; i++)
                c[i * rank] -= along * o[i * rank];
        }
        double now = sqrt(dot(c, c, rows, rank));
        for (size_t i = 0; i < rows; i++)
            if (now > 1e-4 * before)
                c[i * rank] /= (float)now;
            else
                c[i * rank] = 0;
    }
}

// A matrix of the job, with its rank, and the places of its P and its Q in the
// vectors that travel.
struct piece {
    size_t off, rows, columns, r, p, q;
};

static void plan(const struct lowrank *o, struct piece *all, size_t *np,
                 size_t *nq)
{
    *np = *nq = 0;
    for (int m = 0; m < o->matrices; m++) {
        const struct matrix *x = &o->matrix[m];
        size_t r = x->rows < x->columns ? x->rows : x->columns;
        r = r < o->rank ? r : o->rank;
        all[m] = (struct piece){x->off, x->rows, x->columns, r, *np, *nq};
        *np += x->rows * r;
        *nq += x->columns * r;
    }
}

// Which elements are in a matrix.
static bool *marks(struct lab *l, const struct lowrank *o)
{
    bool *in = lab_alloc(l, o->n + 1, sizeof *in);
    if (!in)
        return NULL;
    memset(in, 0, o->n);
    for (int m = 0; m < o->matrices; m++)
        memset(in + o->matrix[m].off, 1,
               o->matrix[m].rows * o->matrix[m].columns);
    return in;
}

// One of the products: element (i, j) of M adds to row i or j of `to`.
static void multiply(const struct piece *x, const float *g, const float *from,
                     float *to, bool to_rows)
{
    size_t n = to_rows ? x->rows : x->columns;
    memset(to, 0, n * x->r * sizeof *to);
    for (size_t e = 0; e < x->rows * x->columns; e++) {
        size_t i = e / x->columns, j = e % x->columns;
        const float *f = from + (to_rows ? j : i) * x->r;
        float *t = to + (to_rows ? i : j) * x->r;
        for (size_t k = 0; k < x->r; k++)
            t[k] += g[x->off + e] * f[k];
    }
}

int lowrank_exchange(struct lab *l, const struct lowrank *o, float *g,
                     float *error, float *q)
{
    struct piece all[LOWRANK_MATRICES];
    size_t np, nq, at;
    plan(o, all, &np, &nq);
    bool *in = marks(l, o);
    float *p = lab_alloc(l, np + o->n + 1, sizeof *p);
    float *sums = lab_alloc(l, nq + 1, sizeof *sums);
    if (!in || !p || !sums)
        return -1;
    for (size_t i = 0; i < o->n; i++)
        g[i] += in[i] ? error[i] : 0;
    for (int m = 0; m < o->matrices; m++)
        multiply(&all[m], g, q + all[m].q, p + all[m].p, true);
    at = np;
    for (size_t i = 0; i < o->n; i++)
        if (!in[i])
            p[at++] = g[i];
    if (o->sum(o, l, p, at))
        return -1;
    for (size_t i = 0; i < at; i++)
        p[i] /= (float)l->workers;
    at = np;
    for (size_t i = 0; i < o->n; i++)
        if (!in[i])
            g[i] = p[at++];
    for (int m = 0; m < o->matrices; m++) {
        lowrank_orthogonal(p + all[m].p, all[m].rows, all[m].r);
        multiply(&all[m], g, p + all[m].p, sums + all[m].q, false);
    }
    if (o->sum(o, l, sums, nq))
        return -1;
    for (int m = 0; m < o->matrices; m++) {
        const struct piece *x = &all[m];
        const float *c = p + x->p;
        for (size_t e = 0; e < x->columns * x->r; e++)
            if (dot(c + e % x->r, c + e % x->r, x->rows, x->r) > 0)
                q[x->q + e] = sums[x->q + e] / (float)l->workers;
        for (size_t e = 0; e < x->rows * x->columns; e++) {
            const float *row = c + e / x->columns * x->r;
            const float *column = q + x->q + e % x->columns * x->r;
            float value = (float)dot(row, column, x->r, 1);
            error[x->off + e] = g[x->off + e] - value;
            g[x->off + e] = value;
        }
    }
    return 0;
}
