// residual_slots.c - saves and loads what one step leaves to the next.

#include "squeeze/residuals.h"

#include "sync/slots.h"

#include "cluster/cluster.h"
#include "optim/optim.h"

#include <stdio.h>
#include <string.h>

int residuals_own_slot(const struct sync *s)
{
    return optim_slots(s->job.optim);
}

static int worker_slot(const struct sync *s, const struct residuals *r,
                       int rank)
{
    return residuals_own_slot(s) + (r->own_name != NULL) +
           rank * (r->speed ? 2 : 1);
}

int residuals_slots(const struct sync *s, const struct residuals *r)
{
    return worker_slot(s, r, r->kept ? s->job.cluster->world : 0);
}

void residuals_slot_name(const struct sync *s, const struct residuals *r,
                         int slot, char name[SYNC_SLOT_NAME])
{
    int at = slot - worker_slot(s, r, 0), each = r->speed ? 2 : 1;
    if (at >= 0)
        snprintf(name, SYNC_SLOT_NAME, "%s_of_worker_%d",
                 at % each ? "velocity" : "residual", at / each);
    else
        snprintf(name, SYNC_SLOT_NAME, "%s",
                 slot == residuals_own_slot(s)
                     ? r->own_name
                     : optim_slot_name(s->job.optim, slot));
}

int residuals_read(const struct sync *s, const struct residuals *r,
                   sync_visit *visit, void *ctx)
{
    int slot = worker_slot(s, r, s->job.cluster->rank);
    return (r->kept && visit(ctx, slot, 0, r->kept, s->job.n)) ||
                   (r->speed && visit(ctx, slot + 1, 0, r->speed, s->job.n))
               ? -1
               : 0;
}

int residuals_save(struct sync *s, const struct residuals *r, sync_visit *visit,
                   void *ctx)
{
    return slots_of_rule.save(s, visit, ctx) || residuals_read(s, r, visit, ctx)
               ? -1
               : 0;
}

// Adds up the vectors that this worker takes, in `to`: the residuals of
// workers, or what is `behind` = 1 slot behind them. `one` is a vector that is
// free between two steps. *by becomes w'/w, by which they are multiplied.
static int take_vectors(const struct sync *s, const struct residuals *r,
                        int behind, float *to, float *one, sync_visit *visit,
                        void *ctx, float *by)
{
    int rc = 0, then = 0, now = s->job.cluster->world;
    size_t n = s->job.n;
    memset(to, 0, n * sizeof *to);
    while (!(rc = visit(ctx, worker_slot(s, r, then) + behind, 0, one, n))) {
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

int residuals_fill(const struct sync *s, const struct residuals *r,
                   sync_visit *visit, void *ctx, float *by)
{
    float same;
    *by = 1;
    return (r->kept &&
            take_vectors(s, r, 0, r->kept, r->fresh, visit, ctx, by)) ||
                   (r->speed && take_vectors(s, r, 1, r->speed, r->fresh_speed,
                                             visit, ctx, &same))
               ? -1
               : 0;
}

int residuals_load(struct sync *s, const struct residuals *r, sync_visit *visit,
                   void *ctx, float *by)
{
    return slots_of_rule.load(s, visit, ctx) ||
                   residuals_fill(s, r, visit, ctx, by)
               ? -1
               : 0;
}
