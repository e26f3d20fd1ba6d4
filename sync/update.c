// update.c - overflow test, unscale, clip, update: in that order, by the device.

#include "sync/update.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/busy.h"
#include "sync/stage.h"

#include <math.h>
#include <string.h>

int update_open(struct update *u, const struct sync_job *job)
{
    return rule_open(&u->rule, job->dev, job->optim, job->n);
}

void update_close(struct update *u, const struct sync_job *job)
{
    (void)job;
    rule_close(&u->rule);
}

int update_step(struct update *u, const struct sync_job *job,
                const struct sync_in *in, float divided, struct sync_out *out)
{
    float *params = job->params, *grads = job->grads;
    struct rule_in rule = {
        .step = in->step,
        .lr = in->lr,
        .scale = in->grad_scale * divided,
        .clip = in->clip,
        .copy = job->copy,
    };
    out->update_began_ns = now_ns();
    if (job->stage && stage_send_grads(job->stage, &params, &grads))
        return -1;
    if (busy_begin(job->dev, DEVICE_COMPUTE) ||
        rule_step(&u->rule, params, grads, &rule, &out->grad_norm) ||
        busy_end(job->dev, DEVICE_COMPUTE))
        return -1;
    out->skipped = !isfinite(out->grad_norm);
    out->update_ended_ns = now_ns();
    return 0;
}

int update_get(const struct update *u, const struct sync_job *job,
               float *const *slots)
{
    (void)job;
    return rule_get(&u->rule, slots);
}

// Slot i by way of a host vector: the slot itself where that is one.
static int set_slot(struct update *u, const struct sync_job *job, int i,
                    const float *from, update_spread *spread, void *ctx)
{
    bool host = device_is_host(job->dev);
    float *slot = u->rule.slots[i];
    float *vector = host ? slot : mem_alloc(job->n, sizeof *vector);
    if (!vector)
        return -1;
    if (job->cluster->rank == 0)
        memcpy(vector, from, job->n * sizeof *vector);
    int rc = spread ? spread(ctx, i, vector) : 0;
    if (!host) {
        if (!rc)
            rc = device_copy(job->dev, slot, vector, job->n * sizeof *vector);
        mem_free(vector);
    }
    return rc;
}

int update_set(struct update *u, const struct sync_job *job,
               const float *const *slots, update_spread *spread, void *ctx)
{
    for (int i = 0; i < optim_slots(job->optim); i++)
        if (set_slot(u, job, i, slots ? slots[i] : NULL, spread, ctx))
            return -1;
    return 0;
}
