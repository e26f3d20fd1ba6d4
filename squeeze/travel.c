// travel.c - what both ways of travelling do with a unit.

#include "squeeze/travel.h"

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
    return residuals_add(&q->residuals, s->job.grads, u->off, u->n);
}
