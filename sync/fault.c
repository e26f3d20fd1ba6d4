// fault.c - what goes wrong on purpose: inject=, mistake=.

#include "sync/fault.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"
#include "sync/copies.h"

#include <math.h>
#include <signal.h>

int fault_step(const struct sync *s)
{
    if (s->fault.kind == FAULT_NONE || s->calls != s->fault.at)
        return 0;
    if (s->fault.kind == FAULT_KILL)
        raise(SIGKILL);
    if (s->fault.kind == FAULT_FAIL)
        return fail("inject: step %llu fails on purpose",
                    (unsigned long long)s->calls);
    if (s->fault.kind == FAULT_DELAY)
        sleep_ns((uint64_t)s->fault.ms * 1000000u);
    return 0;
}

void fault_gradient(struct sync *s)
{
    bool nan = s->fault.kind == FAULT_NAN;
    if ((!nan && s->fault.kind != FAULT_INF) || s->calls + 1 != s->fault.at)
        return;
    float bad = nan ? NAN : INFINITY;
    size_t off = s->job.buckets[0].off;
    float *grads = s->lends_grads ? s->place.grads
                   : s->copies    ? s->copies->grads + off
                                  : s->job.grads + off;
    device_copy(s->job.dev, grads, &bad, sizeof bad);
}

// ---- mistakes

int fault_check(const struct sync *s)
{
    bool host = s->copies || device_is_host(s->job.dev);
    if (s->job.settings->mistake.kind == MISTAKE_LOCAL_CLIP && !host)
        return fail("mistake=local_clip clips in host memory only; try: "
                    "device=cpu");
    return 0;
}

void fault_clip(struct sync *s, const struct sync_in *in)
{
    const struct sync_job *job = &s->job;
    float own = in->grad_scale * (float)job->cluster->world, norm;
    if (job->settings->mistake.kind != MISTAKE_LOCAL_CLIP)
        return;
    double squares = optim_sum_squares(job->grads, job->n);
    float factor = optim_clip_scale(squares, own, in->clip, &norm) / own;
    for (size_t i = 0; isfinite(norm) && i < job->n; i++)
        job->grads[i] *= factor;
}
