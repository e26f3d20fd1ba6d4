// decoupled.c - units of which workers exchange what moves fastest in their
// momenta: squeeze=demo (cosines.h). A momentum is what residuals.h calls a
// residual, which decays. The signs that all workers take are the update.

#include "squeeze/travel.h"

#include "cluster/cluster.h"
#include "telemetry/span.h"

static int open_grids(struct sync *s)
{
    struct squeezed *q = s->state;
    for (int i = 0; i < q->nunits; i++)
        q->units[i].bytes = demo_bytes(&q->units[i].grid);
    return travel_open(s);
}

static int send(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    demo_encode(s->job.settings, &u->grid, travel_x(s, u),
                travel_message(u, s->job.cluster->rank), q->scratch);
    span_end(q->lane);
    return travel_gather(s, u);
}

static int take(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    int world = s->job.cluster->world, rc = 0;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    for (int r = 0; !rc && r < world; r++)
        if (demo_check(&u->grid, travel_message(u, r)))
            rc = travel_refuse(s, u, r);
    if (!rc)
        demo_signs(&u->grid, u->messages, world, s->job.grads + u->off,
                   q->scratch);
    span_end(q->lane);
    return rc;
}

const struct squeeze_way squeeze_decoupled = {
    .open = open_grids,
    .send = send,
    .take = take,
};
