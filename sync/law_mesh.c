// law_mesh.c - bytes of a model that is cut into stages and slices.

#include "sync/law_mesh.h"

#include <stdbool.h>

static bool is_first(const struct law_mesh *m)
{
    return m->stage == 0;
}

static bool is_last(const struct law_mesh *m)
{
    return m->stage == m->stages - 1;
}

int law_mesh_order_matters(int replicas, int wire_bytes)
{
    return replicas > 2 || (replicas == 2 && wire_bytes < 4);
}

double law_mesh_stages(const struct law_mesh *m)
{
    double rows = m->sequence ? m->rows / m->slices : m->rows;
    double stream = m->micro * rows * m->channels * m->width;
    int sends = 2 * m->chunks - is_first(m) - is_last(m);
    int tied = is_first(m) + is_last(m) + (m->aligned && is_first(m));
    if (m->stages == 1)
        return 0;
    return sends * stream + tied * 4 * m->vocab * m->channels / m->slices +
           16.0 * (m->stages - 1);
}

int law_mesh_joins(const struct law_mesh *m, int backward)
{
    return (2 + (backward && m->recompute)) * m->layers +
           (backward ? is_last(m) : is_first(m));
}

double law_mesh_sum(int n)
{
    return 2.0 * (n - 1) / n;
}

int law_mesh_gathers(const struct law_mesh *m, int backward)
{
    int ends = backward ? is_first(m) + is_last(m) : 0;
    int each = backward ? 4 + 2 * m->recompute : 2;
    return m->sequence ? each * m->layers + ends : 0;
}

int law_mesh_norms(const struct law_mesh *m, int backward)
{
    return m->sequence && backward ? 2 * m->layers + is_last(m) : 0;
}

// Bytes of all exchanges of the residual stream in a micro-batch.
static double streams(const struct law_mesh *m)
{
    double n = m->rows * m->channels, sum = law_mesh_sum(m->slices);
    int joins = law_mesh_joins(m, false) + law_mesh_joins(m, true);
    int gathers = law_mesh_gathers(m, false) + law_mesh_gathers(m, true);
    if (!m->sequence)
        return joins * sum * 4 * n;
    return sum / 2 * n * (joins * 4 + gathers * m->width) +
           law_mesh_norms(m, true) * 8 * m->channels * (m->slices - 1);
}

double law_mesh_slices(const struct law_mesh *m)
{
    double loss = is_last(m) * 3.0 * 4 * m->rows * (m->slices - 1);
    return m->slices == 1
               ? 0
               : m->micro * (streams(m) + loss) + 8.0 * (m->slices - 1);
}
