// squeezed.c - replicas that exchange compressed gradients.
//
// Each range of the gradients (a unit) is compressed as soon as backward has
// filled it, and its message travels while backward goes on:
//
//     trainer  |encode| .. |encode| .. |encode| |await, decode| update
//     group            [messages 0 ][messages 1][messages 2]
//
// After the last message every worker has the same sum in its gradients, and
// sync.c updates as if they had travelled whole. How a unit travels is told in
// messages.c and sums.c.
//
// The residual, what the messages lack, exists twice: `kept` is that of the
// last update, `fresh` that of the present step. A step that is skipped, as
// after an overflow, leaves `kept` as it was. So no residual keeps a NaN.

#include "squeeze/travel.h"

#include "sync/members.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "telemetry/span.h"

// ---- open

static const struct squeeze_way *way_of(const struct squeeze_ops *ops)
{
    return ops->gives_update ? &squeeze_decoupled
           : ops->summed     ? &squeeze_summed
           : ops->twice      ? &squeeze_twice
                             : &squeeze_gathered;
}

static int open_units(struct sync *s)
{
    struct squeezed *q = s->state;
    struct squeeze_unit *cut;
    int n = squeezed_units(&s->job, &cut);
    q->units = n < 0 ? NULL : mem_alloc((size_t)n, sizeof *q->units);
    q->nunits = n;
    for (int i = 0; q->units && i < n; i++) {
        struct unit *u = &q->units[i];
        *u = (struct unit){.off = cut[i].off, .n = cut[i].n};
        u->matrix = power_matrix(s->job.settings, u->n, cut[i].rows);
        u->grid = demo_grid(s->job.settings, u->n, cut[i].rows);
        u->own_at = q->residuals.nown;
        q->residuals.nown += q->way->own ? q->way->own(s, u).n : 0;
    }
    mem_free(cut);
    return q->units ? 0 : -1;
}

static int open_scratch(struct squeezed *q)
{
    size_t most = 0;
    for (int i = 0; i < q->nunits; i++)
        most = q->units[i].n > most ? q->units[i].n : most;
    q->scratch = mem_alloc(q->ops->scratch ? q->ops->scratch(most) : 1, 1);
    q->part = mem_alloc(most, sizeof *q->part);
    return q->scratch && q->part ? 0 : -1;
}

static int squeezed_open(struct sync *s)
{
    struct squeezed *q = s->state;
    q->ops = squeeze_find(s->job.settings->squeeze);
    q->way = way_of(q->ops);
    q->lane = spans_compute(s->job.spans);
    s->residuals = &q->residuals;
    s->gives_update = q->ops->gives_update;
    if (q->way->all_alike || s->job.settings->feedback)
        q->residuals.own_name = q->way->own_name;
    if (open_units(s) || q->way->open(s) || open_scratch(q) ||
        residuals_open(&q->residuals, s))
        return -1;
    const struct members_need need = {
        .grain = 1, // a message is one chunk
        .depth = (1 + (size_t)q->ops->twice) * (size_t)q->nunits,
        .pairs = q->ops->twice && !q->ops->summed,
    };
    if (members_open(s, &need))
        return -1;
    s->scale = 1;
    return 0;
}

// ---- a step

static int squeezed_ready(struct sync *s, int b)
{
    struct squeezed *q = s->state;
    if (b == 0) {
        q->next = 0;
        q->plain = !residuals_begin(&q->residuals, s);
    }
    for (; q->next < q->nunits; q->next++) {
        struct unit *u = &q->units[q->next];
        if (s->job.buckets[b].off > u->off)
            return 0; // it is not full yet
        if (q->plain ? travel_sum(s, u, s->job.grads + u->off, u->n)
                     : q->way->send(s, u))
            return -1;
    }
    return 0;
}

// Awaits each unit, and does `then` with it.
static int for_units(struct sync *s,
                     int (*then)(struct sync *s, struct unit *u))
{
    struct squeezed *q = s->state;
    for (int i = 0; i < q->nunits; i++)
        if (group_await(s->group, q->units[i].ticket) ||
            (then && then(s, &q->units[i])))
            return -1;
    return 0;
}

static int squeezed_settle(struct sync *s)
{
    struct squeezed *q = s->state;
    int rc = q->plain             ? for_units(s, NULL)
             : q->way->send_again ? for_units(s, q->way->send_again)
                                  : 0;
    if (!rc && !q->plain)
        rc = for_units(s, q->way->take);
    s->stats = s->group->stats;
    return rc;
}

static void squeezed_updated(struct sync *s, bool skipped)
{
    struct squeezed *q = s->state;
    if (!skipped && !q->plain)
        residuals_keep(&q->residuals);
}

// ---- state

// Visits what the way of this worker keeps of all units.
static int visit_own(struct sync *s, sync_visit *visit, void *ctx)
{
    struct squeezed *q = s->state;
    float *kept = q->residuals.own_kept;
    for (int i = 0; kept && i < q->nunits; i++) {
        const struct unit *u = &q->units[i];
        struct bucket own = q->way->own(s, u);
        int rc = own.n ? visit(ctx, residuals_own_slot(s), own.off,
                               kept + u->own_at, own.n)
                       : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static int squeezed_save(struct sync *s, sync_visit *visit, void *ctx)
{
    const struct squeezed *q = s->state;
    bool saves = s->job.cluster->rank == 0 || !q->way->all_alike;
    return residuals_save(s, visit, ctx) || (saves && visit_own(s, visit, ctx))
               ? -1
               : 0;
}

static int squeezed_load(struct sync *s, sync_visit *visit, void *ctx)
{
    struct squeezed *q = s->state;
    float by;
    if (residuals_load(s, visit, ctx, &by) || visit_own(s, visit, ctx) < 0)
        return -1;
    float *own = q->way->all_alike ? NULL : q->residuals.own_kept;
    for (size_t i = 0; own && i < q->residuals.nown; i++)
        own[i] *= by;
    return 0;
}

static void squeezed_close(struct sync *s)
{
    struct squeezed *q = s->state;
    residuals_close(&q->residuals);
    mem_free(q->units);
    mem_free(q->buffers);
    mem_free(q->scratch);
    mem_free(q->part);
}

static const struct sync_state_ops state = {
    .slots = residuals_slots,
    .slot_name = residuals_slot_name,
    .save = squeezed_save,
    .load = squeezed_load,
};

const struct sync_ops sync_squeezed = {
    .state_size = sizeof(struct squeezed),
    .state = &state,
    .open = squeezed_open,
    .ready = squeezed_ready,
    .settle = squeezed_settle,
    .updated = squeezed_updated,
    .close = squeezed_close,
};
