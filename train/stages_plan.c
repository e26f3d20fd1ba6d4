// stages_plan.c - finds which stage a worker is, and which part of the model it
// holds.

#include "train/stages.h"

#include "cluster/cluster.h"
#include "config/mesh.h"
#include "model/part.h"
#include "train/shape.h"
#include "train/trainer.h"

int stages_plan(struct trainer *t)
{
    t->stage = mesh_at(&t->run.mesh, t->cluster->rank, MESH_PP);
    return shape_cut(&t->run, &t->plan, t->stage, &t->whole, &t->config);
}

bool stages_is_first(const struct trainer *t, int chunk)
{
    return t->stage == 0 && chunk == 0;
}

bool stages_is_last(const struct trainer *t, int chunk)
{
    return t->stage == t->plan.stages - 1 && chunk == t->plan.chunks - 1;
}

size_t stages_tied(const struct trainer *t)
{
    bool end = t->stage == 0 || t->stage == t->plan.stages - 1;
    return t->plan.stages > 1 && end
               ? (size_t)part_words(&t->config).n * (size_t)t->whole.channels
               : 0;
}
