// stages_plan.c - finds which stage a worker is, which part of the model it
// holds, and how many buffers it needs.

#include "train/stages.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/mesh.h"
#include "model/part.h"
#include "train/shape.h"
#include "train/trainer.h"

static struct pipeline plan_of(const struct trainer *t)
{
    const struct run *r = &t->run;
    int stages = mesh_size(&r->mesh, MESH_PP);
    if (stages == 1)
        return (struct pipeline){PIPELINE_NAIVE, 1, r->accum, 1, 0};
    return (struct pipeline){(enum pipeline_kind)r->pipeline, stages, r->accum,
                             r->chunks, r->ahead};
}

// accum= is called `micro` in a timetable.
int stages_check(struct trainer *t)
{
    const struct pipeline *p = &t->plan;
    t->plan = plan_of(t);
    if (p->stages == 1)
        return 0;
    if (p->micro > PIPELINE_MICRO)
        return fail("accum=%d: a pipeline takes at most %d micro-batches in a "
                    "step; try: accum=%d and a larger batch=, or more replicas",
                    p->micro, PIPELINE_MICRO, PIPELINE_MICRO);
    if (p->chunks > 1 && p->micro % p->stages)
        return fail("chunks=%d: accum=%d micro-batches are no multiple of %d "
                    "stages; try: accum=%d",
                    p->chunks, p->micro, p->stages,
                    (p->micro / p->stages + 1) * p->stages);
    return pipeline_check(p);
}

int stages_plan(struct trainer *t)
{
    const struct run *r = &t->run;
    const struct stage_layers *cut = &r->stages;
    t->stage = mesh_at(&r->mesh, t->cluster->rank, MESH_PP);
    t->config = t->whole;
    if (t->plan.stages == 1)
        return 0;
    int parts = t->plan.stages * t->plan.chunks;
    if (cut->n && cut->n != parts)
        return fail("stages=: lists the layers of %d parts, but %d stages of "
                    "chunks=%d have %d; try: leave it out",
                    cut->n, t->plan.stages, t->plan.chunks, parts);
    return part_cut(&t->whole, t->plan.stages, t->stage, t->plan.chunks,
                    cut->n ? cut->layers : NULL, &t->config);
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
