// stages_plan.c - finds which stage a worker is, which part of the model it
// holds, and how many buffers it needs.

#include "train/stages.h"

#include "cluster/cluster.h"
#include "config/mesh.h"
#include "model/part.h"
#include "train/shape.h"
#include "train/trainer.h"

int stages_check(struct trainer *t)
{
    return shape_pipeline(&t->run, &t->plan);
}

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

int stages_before(const struct trainer *t)
{
    return (t->stage + t->plan.stages - 1) % t->plan.stages;
}

int stages_behind(const struct trainer *t)
{
    return (t->stage + 1) % t->plan.stages;
}

size_t stages_tied(const struct trainer *t)
{
    bool end = t->stage == 0 || t->stage == t->plan.stages - 1;
    return t->plan.stages > 1 && end
               ? (size_t)part_words(&t->config).n * (size_t)t->whole.channels
               : 0;
}

size_t stages_bytes(const struct trainer *t)
{
    return stages_tied(t) * sizeof(float);
}

int stages_first_input(const struct trainer *t)
{
    return shape_first_input(&t->plan, t->stage);
}

int stages_ahead(const struct trainer *t)
{
    return shape_ahead(&t->plan, t->stage);
}

void stages_buffers(const struct trainer *t, struct model_job *job)
{
    shape_stage(&t->plan, t->stage, job);
}
