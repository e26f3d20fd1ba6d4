// stage.c - lets a backend that knows host memory alone serve a GPU.

#include "sync/stage.h"

#include "base/base.h"
#include "device/staging.h"

struct stage {
    struct sync_job device; // as it was, pointing at the device's vectors
    struct staging *params, *grads;
};

int stage_open(struct stage **out, struct sync_job *job, bool always)
{
    struct stage *s = mem_alloc(1, sizeof *s);
    if (!s)
        return -1;
    s->device = *job;
    if (staging_open(&s->params, job->dev, job->params, job->n, job->nbuckets,
                     always) ||
        staging_open(&s->grads, job->dev, job->grads, job->n, job->nbuckets,
                     always)) {
        stage_close(&s);
        return -1;
    }
    job->params = staging_host(s->params);
    job->grads = staging_host(s->grads);
    *out = s;
    return 0;
}

void stage_close(struct stage **s)
{
    if (!*s)
        return;
    staging_close(&(*s)->params);
    staging_close(&(*s)->grads);
    mem_free(*s);
    *s = NULL;
}

int stage_ready(struct stage *s, int b)
{
    const struct bucket *k = &s->device.buckets[b];
    return staging_down(s->grads, b, k->off, k->n);
}

int stage_await(const struct stage *s, int b)
{
    return staging_await(s->grads, b);
}

float *stage_grads(const struct stage *s)
{
    return s->device.grads;
}

float *stage_params(const struct stage *s)
{
    return s->device.params;
}

int stage_fetch_params(struct stage *s)
{
    if (staging_down(s->params, 0, 0, s->device.n))
        return -1;
    return staging_await(s->params, 0);
}

int stage_send_params(struct stage *s)
{
    if (staging_up(s->params, 0, s->device.n))
        return -1;
    return staging_settle(s->params);
}

int stage_send_grads(struct stage *s)
{
    if (staging_up(s->grads, 0, s->device.n))
        return -1;
    return staging_settle(s->grads);
}
