// residuals.c - what one step leaves to the next.

#include "squeeze/residuals.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "squeeze/squeeze.h"

int residuals_open(struct residuals *r, const struct sync *s)
{
    float **const v[] = {&r->kept, &r->fresh, &r->speed, &r->fresh_speed};
    int vectors = s->job.settings->momentum_correction ? 4 : 2;
    r->decay = s->job.velocity_decay;
    r->fade =
        s->job.settings->squeeze == SQUEEZE_DEMO ? s->job.velocity_decay : 1;
    for (int i = 0; s->job.settings->feedback && i < vectors; i++)
        if (!(*v[i] = mem_alloc(s->job.n, sizeof **v[i])))
            return -1;
    return 0;
}

void residuals_close(struct residuals *r)
{
    mem_free(r->kept);
    mem_free(r->fresh);
    mem_free(r->speed);
    mem_free(r->fresh_speed);
    *r = (struct residuals){0};
}

bool residuals_begin(struct residuals *r, struct sync *s)
{
    const struct sync_settings *set = s->job.settings;
    bool compressed = s->steps >= squeeze_whole_steps(set);
    s->gives_moment = compressed && set->freeze;
    r->moment = s->gives_moment ? s->rule.slots[0] : NULL;
    if (s->gives_moment) {
        float beta = s->job.optim->beta1, world = (float)s->job.cluster->world;
        r->of_grads = 1 - beta;
        r->of_moment = beta / (world * s->job.grad_scale);
    }
    return compressed;
}

void residuals_keep(struct residuals *r)
{
    float *kept = r->kept, *speed = r->speed;
    r->kept = r->fresh;
    r->fresh = kept;
    r->speed = r->fresh_speed;
    r->fresh_speed = speed;
}

float *residuals_add(const struct residuals *r, float *grads, size_t off,
                     size_t n)
{
    for (size_t i = 0; r->moment && i < n; i++)
        grads[i] = r->of_grads * grads[i] + r->of_moment * r->moment[off + i];
    if (!r->kept)
        return grads;
    if (r->speed) {
        for (size_t i = off; i < off + n; i++) {
            r->fresh_speed[i] = r->decay * r->speed[i] + grads[i - off];
            r->fresh[i] = r->fresh_speed[i] + r->kept[i];
        }
        return r->fresh + off;
    }
    for (size_t i = off; i < off + n; i++)
        r->fresh[i] = grads[i - off] + r->fade * r->kept[i];
    return r->fresh + off;
}
