// power.c - computes what power.h promises. All sums have one order, so all
// workers get the same bits from the same numbers.

#include "squeeze/power.h"

#include "base/rng.h"
#include "squeeze/squeeze.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, TRIES = 4 };

struct power_matrix power_matrix(const struct sync_settings *s, size_t n,
                                 size_t rows)
{
    size_t cols = rows ? n / rows : 0, rank = (size_t)s->squeeze_rank;
    bool saves = rank * (rows + cols) < rows * cols;
    return (struct power_matrix){rows, cols, saves ? s->squeeze_rank : 0};
}

size_t power_p(const struct power_matrix *m)
{
    return (size_t)m->rank * m->rows;
}

size_t power_q(const struct power_matrix *m)
{
    return (size_t)m->rank * m->cols;
}

static float dot(const float *a, const float *b, size_t n)
{
    float lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += a[i + l] * b[i + l];
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

// The same in double, so that no square overflows.
static double dot_exact(const float *a, const float *b, size_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)a[i + l] * (double)b[i + l];
    for (; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

// y += by x
static void add_times(float *y, const float *x, float by, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += by * x[i];
}

static void divide(float *x, double by, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] / by);
}

static void draw(float *x, uint64_t key, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(key, first + i);
}

// Makes vector k a unit vector at right angles to those before it. It subtracts
// their parts twice, because the first time leaves the rounding errors of a
// long vector in a short one. Returns false if nothing is left of it. A NaN is
// left as one.
static bool straighten(float *v, int k, size_t n)
{
    float *x = v + (size_t)k * n;
    double before = sqrt(dot_exact(x, x, n));
    if (before <= 0)
        return false;
    divide(x, before, n);
    for (int time = 0; time < 2; time++) {
        for (int j = 0; j < k; j++) {
            const float *y = v + (size_t)j * n;
            add_times(x, y, -(float)dot_exact(x, y, n), n);
        }
        double left = sqrt(dot_exact(x, x, n));
        if (left < 1e-5) // no more than rounding errors
            return false;
        divide(x, left, n);
    }
    return true;
}

void power_orthonormal(float *v, int count, size_t n, uint64_t key)
{
    for (int k = 0; k < count; k++)
        for (int t = 0; t < TRIES && !straighten(v, k, n); t++)
            draw(v + (size_t)k * n, key, (uint64_t)(TRIES * k + t) * n, n);
}

void power_right(const struct power_matrix *m, const float *x, const float *q,
                 float *p)
{
    for (size_t i = 0; i < m->rows; i++)
        for (int k = 0; k < m->rank; k++)
            p[(size_t)k * m->rows + i] =
                dot(x + i * m->cols, q + (size_t)k * m->cols, m->cols);
}

void power_left(const struct power_matrix *m, const float *x, const float *p,
                float *q)
{
    memset(q, 0, power_q(m) * sizeof *q);
    for (size_t i = 0; i < m->rows; i++)
        for (int k = 0; k < m->rank; k++)
            add_times(q + (size_t)k * m->cols, x + i * m->cols,
                      p[(size_t)k * m->rows + i], m->cols);
}

void power_product(const struct power_matrix *m, const float *p, const float *q,
                   float *out)
{
    memset(out, 0, m->rows * m->cols * sizeof *out);
    for (size_t i = 0; i < m->rows; i++)
        for (int k = 0; k < m->rank; k++)
            add_times(out + i * m->cols, q + (size_t)k * m->cols,
                      p[(size_t)k * m->rows + i], m->cols);
}

const struct squeeze_ops squeeze_power = {
    .name = "power",
    .twice = true,
    .summed = true,
};
