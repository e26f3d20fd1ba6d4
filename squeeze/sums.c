// sums.c - units that travel as two all-reduces, one after the other:
// squeeze=power (power.h). Vectors, and matrices for which a low rank saves
// nothing, travel whole, as one.

#include "squeeze/travel.h"

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "telemetry/span.h"

#include <string.h>

// Q, at the start of the unit.
static struct bucket own_q(const struct sync *s, const struct unit *u)
{
    (void)s;
    return (struct bucket){.off = u->off, .n = power_q(&u->matrix)};
}

// All workers draw the same numbers.
static uint64_t stream(const struct sync *s, const struct unit *u, bool of_p)
{
    return rng_key(rng_key(s->job.seed, of_p), u->off);
}

// The first Q is zero, so power_orthonormal() draws it.
static int open_sums(struct sync *s)
{
    struct squeezed *q = s->state;
    size_t n = 0;
    for (int i = 0; i < q->nunits; i++)
        n += power_p(&q->units[i].matrix);
    float *at = q->buffers = mem_alloc(n, sizeof *at);
    for (int i = 0; at && i < q->nunits; i++) {
        q->units[i].p = at;
        at += power_p(&q->units[i].matrix);
    }
    return q->buffers ? 0 : -1;
}

static int send_p(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    const struct power_matrix *m = &u->matrix;
    float *own = q->residuals.own_fresh + u->own_at, *x = travel_x(s, u);
    if (!m->rank)
        return travel_sum(s, u, x, u->n);
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    memcpy(own, q->residuals.own_kept + u->own_at, power_q(m) * sizeof *own);
    power_orthonormal(own, m->rank, m->cols, stream(s, u, false));
    power_right(m, x, own, u->p);
    span_end(q->lane);
    return travel_sum(s, u, u->p, power_p(m));
}

// x is still where travel_x() left it.
static float *x_of(struct sync *s, const struct unit *u)
{
    struct squeezed *q = s->state;
    return (q->residuals.fresh ? q->residuals.fresh : s->job.grads) + u->off;
}

static int send_q(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    const struct power_matrix *m = &u->matrix;
    float *own = q->residuals.own_fresh + u->own_at;
    if (!m->rank)
        return 0;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    power_orthonormal(u->p, m->rank, m->rows, stream(s, u, true));
    power_left(m, x_of(s, u), u->p, own);
    span_end(q->lane);
    return travel_sum(s, u, own, power_q(m));
}

// Leaves the sum in the gradients. The residual is what x lacks of the mean.
static int take(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    const struct power_matrix *m = &u->matrix;
    float *g = s->job.grads + u->off, *x = x_of(s, u);
    float world = (float)s->job.cluster->world;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    if (m->rank)
        power_product(m, u->p, q->residuals.own_fresh + u->own_at, g);
    else if (x != g)
        memcpy(g, x, u->n * sizeof *g);
    for (size_t i = 0; x != g && i < u->n; i++)
        x[i] = m->rank ? x[i] - g[i] / world : 0;
    span_end(q->lane);
    return 0;
}

const struct squeeze_way squeeze_summed = {
    .own = own_q,
    .own_name = "low_rank_q",
    .all_alike = true,
    .open = open_sums,
    .send = send_p,
    .send_again = send_q,
    .take = take,
};
