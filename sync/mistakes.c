// mistakes.c - common mistakes in programs of this kind, made on purpose.

#include "sync/mistakes.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"

#include <math.h>

int mistakes_check(const struct sync *s)
{
    bool host = s->copies || device_is_host(s->job.dev);
    if (s->job.settings->mistake.kind == MISTAKE_LOCAL_CLIP && !host)
        return fail("mistake=local_clip clips in host memory only; try: "
                    "device=cpu");
    return 0;
}

void mistakes_clip(struct sync *s, const struct sync_in *in)
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

int mistakes_updates(const struct sync *s)
{
    return s->job.settings->mistake.kind == MISTAKE_TWO_UPDATES ? 2 : 1;
}
