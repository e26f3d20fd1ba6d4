// outer.c - every worker trains alone, and every H steps all workers get the
// same parameters again: local SGD and DiLoCo.
//
//     trainer  step|update step|update step|update |  all_reduce  | step|..
//     group                                         [ parameters ]
//
// sync.c updates with this worker's own gradients, which do not travel, and
// calls merge() after every H = every= steps. merge() is one all_reduce of a
// vector as long as the parameters p, and then the outer step. So the bytes are
// those of sync=ring, divided by H.
//
//     d := the mean of start - p, over all workers
//     v := momentum v + d
//     p := start - lr (d + momentum v), which is the next start
//
// `start` is the parameters that all workers had after the last outer step.
// This is DiLoCo (Douillard et al., "DiLoCo: Distributed Low-Communication
// Training of Language Models", 2023), which uses d as a gradient: SGD with
// Nesterov's momentum as in PyTorch. With lr=1 and momentum=0 p becomes the
// mean of all workers' p, and is computed so. That is local SGD (Stich, "Local
// SGD Converges Fast and Communicates Little", ICLR 2019).
//
// With an fp32 wire, where the outer step is the mean, parameters travel.
// Otherwise the difference start - p travels, which is small enough for a wire
// of 16 bits. This needs a copy of the start and, with a momentum, the
// velocity: a vector each.
//
// With lab=FILE, the file of lab 13 does the outer step (labs/grade 13
// --train).
//
// State: every worker has its own slots of the optimiser, which never travel.
// So a checkpoint holds the slots of all workers. Worker 0's have the usual
// names, so that any other backend finds them; then come those of worker 1, 2,
// .., and the velocity. A worker whose slots are not in the checkpoint takes
// worker 0's.

#include "outer/outer.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "sync/members.h"
#include "sync/slots.h"
#include "sync/student.h"

#include <string.h>

// outer_step() of lab 13 (labs/13-outer/outer.h).
typedef void step_function(float lr, float momentum, const float *mean,
                           float *start, float *velocity, size_t n);

struct outer {
    void *file; // lab=FILE; NULL: none
    step_function *student;
    float by; // the sum over all workers is divided by this
    float lr, momentum;
    float *start, *velocity; // NULL if they are not needed
};

static int load(struct outer *o, const struct sync_settings *set)
{
    if (outer_averages(set))
        return fail("lab=%s: its outer_step() is used with an outer step that "
                    "is not the mean; try: outer_lr=0.7 outer_momentum=0.9",
                    set->lab);
    o->file = student_open(set->lab, "outer_step", &o->student);
    return o->file ? 0 : -1;
}

static int outer_open(struct sync *s)
{
    struct outer *o = s->state;
    const struct sync_job *job = &s->job;
    const struct sync_settings *set = job->settings;
    const struct members_need need = {.largest = job->n, .depth = 1};
    o->lr = (float)set->outer_lr;
    o->momentum = (float)set->outer_momentum;
    if (*set->lab && load(o, set))
        return -1;
    if (!outer_averages(set) || set->wire != DTYPE_F32) {
        o->start = mem_alloc(job->n, sizeof *o->start);
        if (!o->start)
            return -1;
    }
    if (o->momentum > 0 || o->student) {
        o->velocity = mem_alloc(job->n, sizeof *o->velocity);
        if (!o->velocity)
            return -1;
    }
    if (members_open(s, &need))
        return -1;
    o->by = s->scale * (float)job->cluster->world;
    s->scale = 1 / (float)job->cluster->world; // grads are this worker's own
    return group_share(s->group, job->params, job->n * sizeof *job->params);
}

static int outer_broadcast(struct sync *s, int slot, float *v)
{
    struct outer *o = s->state;
    CHECK(slot == SYNC_PARAMS); // each worker loads its own slots
    if (members_broadcast(s, v, s->job.n))
        return -1;
    if (o->start)
        memcpy(o->start, v, s->job.n * sizeof *v);
    return 0;
}

// ---- the outer step, with the same bits on every worker

// v := v / by.
static void divide(float *v, size_t n, float by)
{
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++)
        v[i] /= by;
}

// p := start - p, the difference that travels.
static void subtract(float *p, const float *start, size_t n)
{
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++)
        p[i] = start[i] - p[i];
}

// p holds the sum of all workers' differences; p / by is d. Sets p and start to
// the next common parameters.
static void apply(const struct outer *o, float *p, size_t n)
{
    const float lr = o->lr, momentum = o->momentum, by = o->by;
    float *start = o->start, *velocity = o->velocity;
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < n; i++) {
        float d = p[i] / by, step = d;
        if (velocity) {
            velocity[i] = momentum * velocity[i] + d;
            step = d + momentum * velocity[i];
        }
        p[i] = start[i] = start[i] - lr * step;
    }
}

// The outer step by the student's function, of p: the sum of all differences.
static void let_student(struct outer *o, float *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = o->start[i] - p[i] / o->by; // the mean
    o->student(o->lr, o->momentum, p, o->start, o->velocity, n);
    memcpy(p, o->start, n * sizeof *p);
}

static int outer_merge(struct sync *s)
{
    struct outer *o = s->state;
    const struct sync_job *job = &s->job;
    struct group_vector v = group_floats(job->params, job->n);
    uint64_t ticket;
    v.wire = job->settings->wire;
    v.scale = o->by / (float)job->cluster->world;
    v.awaited = true;
    if (o->start)
        subtract(job->params, o->start, job->n);
    if (group_all_reduce(s->group, &v, &ticket) ||
        group_await(s->group, ticket))
        return -1;
    if (o->student)
        let_student(o, job->params, job->n);
    else if (o->start)
        apply(o, job->params, job->n);
    else
        divide(job->params, job->n, o->by);
    s->stats = s->group->stats;
    return 0;
}

// ---- state: worker r's slot i has number r * optim_slots + i; the velocity is
// the last slot

static int velocity_slot(const struct sync *s)
{
    return s->job.cluster->world * optim_slots(s->job.optim);
}

static int outer_slots(const struct sync *s)
{
    const struct outer *o = s->state;
    return velocity_slot(s) + (o->velocity != NULL);
}

static void outer_slot_name(const struct sync *s, int slot,
                            char name[SYNC_SLOT_NAME])
{
    int own = optim_slots(s->job.optim);
    if (slot == velocity_slot(s)) {
        snprintf(name, SYNC_SLOT_NAME, "outer_velocity");
        return;
    }
    const char *usual = optim_slot_name(s->job.optim, slot % own);
    if (slot < own)
        snprintf(name, SYNC_SLOT_NAME, "%s", usual);
    else
        snprintf(name, SYNC_SLOT_NAME, "%s_of_worker_%d", usual, slot / own);
}

static int outer_save(struct sync *s, sync_visit *visit, void *ctx)
{
    const struct outer *o = s->state;
    int own = optim_slots(s->job.optim), rank = s->job.cluster->rank;
    CHECK(s->alone == 0); // all workers have the same params
    for (int i = 0; i < own; i++)
        if (slots_visit(s, i, rank * own + i, false, visit, ctx))
            return -1;
    return rank || !o->velocity
               ? 0
               : visit(ctx, velocity_slot(s), 0, o->velocity, s->job.n);
}

static int outer_load(struct sync *s, sync_visit *visit, void *ctx)
{
    struct outer *o = s->state;
    int own = optim_slots(s->job.optim), rank = s->job.cluster->rank, rc = 0;
    for (int i = 0; rc >= 0 && i < own; i++) {
        rc = slots_visit(s, i, rank * own + i, true, visit, ctx);
        if (rc == SYNC_ABSENT)
            rc = slots_visit(s, i, i, true, visit, ctx);
    }
    if (rc >= 0 && o->velocity)
        rc = visit(ctx, velocity_slot(s), 0, o->velocity, s->job.n);
    return rc < 0 ? -1 : 0;
}

static void outer_close(struct sync *s)
{
    struct outer *o = s->state;
    mem_free(o->start);
    mem_free(o->velocity);
    student_close(&o->file);
}

static const struct sync_state_ops state = {
    .slots = outer_slots,
    .slot_name = outer_slot_name,
    .save = outer_save,
    .load = outer_load,
};

const struct sync_ops sync_outer = {
    .state_size = sizeof(struct outer),
    .state = &state,
    .open = outer_open,
    .broadcast = outer_broadcast,
    .merge = outer_merge,
    .close = outer_close,
};
