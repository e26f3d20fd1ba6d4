// travel.c - what several ways of travelling do with a unit.

#include "squeeze/travel.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "group/group.h"

bool travel_is_last(const struct squeezed *q, const struct unit *u)
{
    return u == &q->units[q->nunits - 1];
}

int travel_sum(struct sync *s, struct unit *u, float *v, size_t n)
{
    struct squeezed *q = s->state;
    struct group_vector all = group_floats(v, n);
    all.awaited = travel_is_last(q, u);
    return group_all_reduce(s->group, &all, &u->ticket);
}

float *travel_x(struct sync *s, const struct unit *u)
{
    const struct squeezed *q = s->state;
    return residuals_add(&q->residuals, s->job.grads + u->off, u->off, u->n);
}

int travel_open(struct sync *s)
{
    struct squeezed *q = s->state;
    size_t world = (size_t)s->job.cluster->world, bytes = 0;
    size_t copies = (1 + (size_t)q->ops->twice) * world;
    for (int i = 0; i < q->nunits; i++)
        bytes += copies * q->units[i].bytes;
    char *at = q->buffers = mem_alloc(bytes, 1);
    for (int i = 0; at && i < q->nunits; i++) {
        struct unit *u = &q->units[i];
        u->messages = at;
        u->given = at + world * u->bytes;
        at += copies * u->bytes;
    }
    return q->buffers ? 0 : -1;
}

int travel_refuse(const struct sync *s, size_t off, size_t n, int rank)
{
    return fail("%s: the message of rank %d for elements %zu to %zu: %s",
                s->job.backend->name,
                cluster_job_rank(s->job.cluster->ranks, rank), off, off + n,
                fail_message());
}
