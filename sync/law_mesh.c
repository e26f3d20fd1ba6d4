// law_mesh.c - bytes of a model that is cut into stages and slices.

#include "sync/law_mesh.h"

#include "base/zigzag.h"

#include <stdbool.h>

static bool is_first(const struct law_mesh *m)
{
    return m->stage == 0;
}

static bool is_last(const struct law_mesh *m)
{
    return m->stage == m->stages - 1;
}

// The rows that a worker has, without regard to slices; the mean.
static double own_rows(const struct law_mesh *m)
{
    return m->pieces > 1 ? m->rows / m->pieces : m->rows;
}

int law_mesh_order_matters(int replicas, int wire_bytes)
{
    return replicas > 2 || (replicas == 2 && wire_bytes < 4);
}

double law_mesh_stages(const struct law_mesh *m)
{
    double rows = own_rows(m) / (m->sequence ? m->slices : 1);
    double stream = m->micro * rows * m->channels * m->width;
    int sends = 2 * m->chunks - is_first(m) - is_last(m);
    int tied = 4 * (is_first(m) + is_last(m)) + m->aligned * is_first(m);
    if (m->stages == 1)
        return 0;
    return sends * stream + (double)tied * m->vocab * m->channels / m->slices +
           16.0 * (m->stages - 1);
}

double law_mesh_joins(const struct law_mesh *m, int backward)
{
    return (2 + (backward ? m->recompute : 0)) * m->layers +
           (backward ? is_last(m) : is_first(m));
}

// For the sum of a vector around a ring of n, each member sends so many times
// the vector's bytes.
static double sum_of(int n)
{
    return 2.0 * (n - 1) / n;
}

double law_mesh_gathers(const struct law_mesh *m, int backward)
{
    int ends = backward ? is_first(m) + is_last(m) : 0;
    int again = m->sequence == 2 ? 0 : 2; // the LayerNorms' outputs
    double each = backward ? 2 + again + 2 * m->recompute : 2;
    return m->sequence ? each * m->layers + ends : 0;
}

int law_mesh_norms(const struct law_mesh *m, int backward)
{
    return m->sequence && backward ? 2 * m->layers + is_last(m) : 0;
}

// Bytes of all exchanges of the residual stream in a micro-batch.
static double streams(const struct law_mesh *m)
{
    double n = own_rows(m) * m->channels, sum = sum_of(m->slices);
    double joins = law_mesh_joins(m, false) + law_mesh_joins(m, true);
    double gathers = law_mesh_gathers(m, false) + law_mesh_gathers(m, true);
    if (!m->sequence)
        return joins * sum * m->sum * n;
    return sum / 2 * n * (joins * m->sum + gathers * m->width) +
           law_mesh_norms(m, true) * 8 * m->channels * (m->slices - 1);
}

// Numbers that all slices of this stage have, if slices differ in length: of
// each layer two LayerNorms and two biases.
static double undivided(const struct law_mesh *m)
{
    bool ends = is_first(m) || is_last(m);
    bool uneven = m->heads % m->slices || (ends && m->vocab % m->slices);
    double rows = 6.0 * m->layers + is_first(m) * m->tokens + is_last(m) * 2;
    return uneven ? rows * m->channels : 0;
}

double law_mesh_slices(const struct law_mesh *m)
{
    double loss = is_last(m) * 3.0 * 4 * own_rows(m) * (m->slices - 1);
    double align = sum_of(m->slices) * m->aligned * undivided(m);
    return m->slices == 1
               ? 0
               : m->micro * (streams(m) + loss) + 8.0 * (m->slices - 1) + align;
}

static double share(int n, int of, int k)
{
    return n / of + (k < n % of);
}

// The mean share of a group's tokens and of the heads that a worker has both
// of: of these no number travels.
static double stays(const struct law_mesh *m)
{
    int heads = m->heads / m->slices;
    int more = m->heads % m->slices; // slices that have one head more
    double sum = 0;
    for (int w = 0; w < m->pieces; w++) {
        int k = w % m->up;
        sum += zigzag_of(m->tokens, m->pieces, w).own *
               (more * share(heads + 1, m->up, k) +
                (m->slices - more) * share(heads, m->up, k));
    }
    return sum / ((double)m->tokens * m->heads);
}

double law_mesh_heads(const struct law_mesh *m, int backward)
{
    double all = 4 * m->rows * m->channels * m->width;
    return m->pieces > 1 && m->up > 1
               ? all * (1 - stays(m)) * (1 + (backward ? m->recompute : 0)) /
                     (m->pieces * m->slices)
               : 0;
}

double law_mesh_keys(const struct law_mesh *m, int backward)
{
    if (m->pieces <= 1)
        return 0;
    double n = m->pieces / m->up, all = 2 * m->rows * m->channels / m->slices;
    double each = backward ? (1 + m->recompute) * m->width + 4 : m->width;
    return (n - 1) / n * all / m->up * each;
}

double law_mesh_groups(const struct law_mesh *m)
{
    double layer = law_mesh_heads(m, false) + law_mesh_heads(m, true);
    return m->pieces > 1 ? m->micro * m->layers * layer + 8.0 * (m->up - 1) : 0;
}

double law_mesh_pieces(const struct law_mesh *m)
{
    double layer = law_mesh_keys(m, false) + law_mesh_keys(m, true);
    return m->pieces > 1
               ? m->micro * m->layers * layer + 8.0 * (m->pieces / m->up - 1) +
                     law_mesh_groups(m)
               : 0;
}
