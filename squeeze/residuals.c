// residuals.c - what one step leaves to the next: makes it, saves and loads it.

#include "squeeze/residuals.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "optim/optim.h"
#include "squeeze/squeeze.h"
#include "sync/slots.h"

#include <string.h>

int residuals_open(struct residuals *r, const struct sync *s)
{
    float **const v[] = {&r->kept, &r->fresh, &r->speed, &r->fresh_speed};
    int vectors = s->job.settings->momentum_correction ? 4 : 2;
    if (r->own_name) {
        r->own_kept = mem_alloc(r->nown, sizeof *r->own_kept);
        r->own_fresh = mem_alloc(r->nown, sizeof *r->own_fresh);
        if (!r->own_kept || !r->own_fresh)
            return -1;
    }
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
    mem_free(r->own_kept);
    mem_free(r->own_fresh);
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

static void swap(float **a, float **b)
{
    float *was = *a;
    *a = *b;
    *b = was;
}

void residuals_keep(struct residuals *r)
{
    swap(&r->own_kept, &r->own_fresh);
    swap(&r->kept, &r->fresh);
    swap(&r->speed, &r->fresh_speed);
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

// ---- slots

int residuals_own_slot(const struct sync *s)
{
    return optim_slots(s->job.optim);
}

static int worker_slot(const struct sync *s, int rank)
{
    const struct residuals *r = s->residuals;
    return residuals_own_slot(s) + (r->own_name != NULL) +
           rank * (r->speed ? 2 : 1);
}

int residuals_slots(const struct sync *s)
{
    return worker_slot(s, s->residuals->kept ? s->job.cluster->world : 0);
}

void residuals_slot_name(const struct sync *s, int slot,
                         char name[SYNC_SLOT_NAME])
{
    const struct residuals *r = s->residuals;
    int at = slot - worker_slot(s, 0), each = r->speed ? 2 : 1;
    if (at >= 0)
        snprintf(name, SYNC_SLOT_NAME, "%s_of_worker_%d",
                 at % each ? "velocity" : "residual", at / each);
    else
        snprintf(name, SYNC_SLOT_NAME, "%s",
                 slot == residuals_own_slot(s)
                     ? r->own_name
                     : optim_slot_name(s->job.optim, slot));
}

int residuals_save(struct sync *s, sync_visit *visit, void *ctx)
{
    const struct residuals *r = s->residuals;
    int slot = worker_slot(s, s->job.cluster->rank);
    return (!s->own_update && slots_of_rule.save(s, visit, ctx)) ||
                   (r->kept && visit(ctx, slot, 0, r->kept, s->job.n)) ||
                   (r->speed && visit(ctx, slot + 1, 0, r->speed, s->job.n))
               ? -1
               : 0;
}

// Adds up the vectors that this worker takes, in `to`: the residuals of
// workers, or what is `behind` = 1 slot behind them. `one` is a vector that is
// free between two steps. *by becomes w'/w, by which they are multiplied.
static int take_vectors(const struct sync *s, int behind, float *to, float *one,
                        sync_visit *visit, void *ctx, float *by)
{
    int rc = 0, then = 0, now = s->job.cluster->world;
    size_t n = s->job.n;
    memset(to, 0, n * sizeof *to);
    while (!(rc = visit(ctx, worker_slot(s, then) + behind, 0, one, n))) {
        bool mine = then++ % now == s->job.cluster->rank;
        for (size_t i = 0; mine && i < n; i++)
            to[i] += one[i];
    }
    // SYNC_ABSENT: there was no such worker
    *by = then ? (float)now / (float)then : 1;
    for (size_t i = 0; i < n; i++)
        to[i] *= *by;
    return rc < 0 ? -1 : 0;
}

int residuals_load(struct sync *s, sync_visit *visit, void *ctx, float *by)
{
    const struct residuals *r = s->residuals;
    float same;
    *by = 1;
    return (!s->own_update && slots_of_rule.load(s, visit, ctx)) ||
                   (r->kept &&
                    take_vectors(s, 0, r->kept, r->fresh, visit, ctx, by)) ||
                   (r->speed && take_vectors(s, 1, r->speed, r->fresh_speed,
                                             visit, ctx, &same))
               ? -1
               : 0;
}
