// copies.c - lets a backend that knows host memory only serve a GPU.

#include "sync/copies.h"

#include "base/base.h"
#include "device/staging.h"

struct copies {
    struct sync_job device; // a copy of the job, with the device's vectors
    struct staging *params, *grads;
};

int copies_open(struct copies **out, struct sync_job *job, bool always)
{
    struct copies *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->device = *job;
    if (staging_open(&s->params, job->dev, job->params, job->n, job->nbuckets,
                     always) ||
        (job->grads && staging_open(&s->grads, job->dev, job->grads, job->n,
                                    job->nbuckets, always))) {
        copies_close(&s);
        return -1;
    }
    job->params = staging_host(s->params);
    if (job->grads)
        job->grads = staging_host(s->grads);
    *out = s;
    return 0;
}

void copies_close(struct copies **s)
{
    if (!*s)
        return;
    staging_close(&(*s)->params);
    staging_close(&(*s)->grads);
    mem_free(*s);
    *s = NULL;
}

int copies_ready(struct copies *s, int b)
{
    const struct bucket *k = &s->device.buckets[b];
    return staging_down(s->grads, b, k->off, k->n);
}

int copies_await(const struct copies *s, int b)
{
    return staging_await(s->grads, b);
}

float *copies_grads(const struct copies *s)
{
    return s->device.grads;
}

float *copies_params(const struct copies *s)
{
    return s->device.params;
}

int copies_fetch_params(struct copies *s)
{
    if (staging_down(s->params, 0, 0, s->device.n))
        return -1;
    return staging_await(s->params, 0);
}

int copies_send_params(struct copies *s)
{
    if (staging_up(s->params, 0, s->device.n))
        return -1;
    return staging_settle(s->params);
}

int copies_send_grads(struct copies *s)
{
    if (staging_up(s->grads, 0, s->device.n))
        return -1;
    return staging_settle(s->grads);
}
