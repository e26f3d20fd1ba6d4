// own_norm.c - adds up the squares of each bucket before it is sent.

#include "sync/own_norm.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "device/device.h"

#include <math.h>

int own_norm_check(const struct sync *s)
{
    const struct sync_job *job = &s->job;
    if (!job->settings->own_norm)
        return 0;
    if (s->lends_grads)
        return fail("own_norm=1: shard=%d has no whole gradient; try: shard=1",
                    job->settings->shard);
    if (job->parts)
        return fail("own_norm=1: a stage or slice has no whole gradient; try: "
                    "leave mesh= out");
    if (s->copies || !device_is_host(job->dev))
        return fail("own_norm=1: reads gradients in host memory only; try: "
                    "device=cpu and staging=auto");
    return 0;
}

void own_norm_add(struct sync *s, int b)
{
    const struct bucket *k = &s->job.buckets[b];
    if (s->job.settings->own_norm)
        s->own_squares += optim_sum_squares(s->job.grads + k->off, k->n);
}

double own_norm_take(struct sync *s, const struct sync_in *in)
{
    double scale = (double)in->grad_scale * s->job.cluster->world;
    double norm = sqrt(s->own_squares) * scale;
    s->own_squares = 0;
    return norm;
}
