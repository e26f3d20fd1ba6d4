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
    double stream = m->micro * m->rows * m->channels * m->width;
    int sends = 2 * m->chunks - is_first(m) - is_last(m);
    int tied = is_first(m) + is_last(m) + (m->aligned && is_first(m));
    if (m->stages == 1)
        return 0;
    return sends * stream + tied * 4 * m->vocab * m->channels / m->slices +
           16.0 * (m->stages - 1);
}

int law_mesh_layer_joins(const struct law_mesh *m, int backward)
{
    return (2 + (backward && m->recompute)) * m->layers;
}

int law_mesh_joins(const struct law_mesh *m, int backward)
{
    return law_mesh_layer_joins(m, backward) +
           (backward ? is_last(m) : is_first(m));
}

double law_mesh_sum(int n)
{
    return 2.0 * (n - 1) / n;
}

double law_mesh_slices(const struct law_mesh *m)
{
    double join = law_mesh_sum(m->slices) * 4 * m->rows * m->channels;
    double loss = is_last(m) * 3.0 * 4 * m->rows * (m->slices - 1);
    int joins = law_mesh_joins(m, false) + law_mesh_joins(m, true);
    return m->slices == 1
               ? 0
               : m->micro * (joins * join + loss) + 8.0 * (m->slices - 1);
}
