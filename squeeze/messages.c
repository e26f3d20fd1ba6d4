// messages.c - units that travel as messages: gathered, twice (squeeze.h), or
// decoupled.
//
// If they travel twice, the first messages are exchanged by all_to_all. Then
// each worker adds up its part of each unit, encodes that sum with a residual
// of its own, and gathers.
//
// Decoupled (squeeze=demo, cosines.h): workers gather what moves fastest in
// their momenta. A momentum is what residuals.h calls a residual, which decays.
// The signs that all workers take are the update.

#include "squeeze/scatter.h"
#include "squeeze/travel.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "telemetry/span.h"

#include <string.h>

// The messages of all workers. They travel as words of 4 bytes, which a carrier
// moves and does not look at.
static struct group_vector words(const struct sync *s, const struct unit *u,
                                 char *messages)
{
    size_t bytes = (size_t)s->job.cluster->world * u->bytes;
    return group_floats((float *)(void *)messages, bytes / sizeof(float));
}

// Sends this worker's message of u->messages to all.
static int gather(struct sync *s, struct unit *u)
{
    struct group_vector v = words(s, u, u->messages);
    v.awaited = travel_is_last(s->state, u);
    return group_all_gather(s->group, &v, &u->ticket);
}

// The message that worker `rank` has sent.
static char *message_of(const struct unit *u, int rank)
{
    return u->messages + (size_t)rank * u->bytes;
}

static struct group_chunk part_of(const struct sync *s, const struct unit *u,
                                  int rank)
{
    return group_chunk(u->n, 1, s->job.cluster->world, rank);
}

static struct bucket own_part(const struct sync *s, const struct unit *u)
{
    struct group_chunk c = part_of(s, u, s->job.cluster->rank);
    bool keeps = s->job.settings->feedback;
    return (struct bucket){.off = u->off + c.off, .n = keeps ? c.n : 0};
}

// What each worker gets a part of, and adds up.
static struct message_parts parts_of(const struct sync *s, const struct unit *u)
{
    const struct squeezed *q = s->state;
    return (struct message_parts){.ops = q->ops,
                                  .scratch = q->scratch,
                                  .off = u->off,
                                  .n = u->n,
                                  .grain = 1,
                                  .bytes = u->bytes,
                                  .given = u->given,
                                  .taken = u->messages};
}

static int open_messages(struct sync *s)
{
    struct squeezed *q = s->state;
    for (int i = 0; i < q->nunits; i++)
        q->units[i].bytes =
            squeeze_message(s->job.settings, s->job.cluster->world,
                            q->units[i].n);
    return travel_open(s);
}

// Writes the message of x, which begins at `off` of the whole vector.
static void encode(struct sync *s, bool sum, size_t off, float *x, size_t n,
                   char *message)
{
    struct squeezed *q = s->state;
    uint64_t key = squeeze_stream(s->job.seed, s->steps + 1,
                                  s->job.cluster->rank, sum, off);
    q->ops->encode(s->job.settings, key, x, n, message, q->scratch);
}

// sum += message `rank` of a unit, which has n elements.
static int add(struct sync *s, const struct unit *u, int rank, size_t n,
               float *sum)
{
    const struct squeezed *q = s->state;
    return q->ops->add(s->job.settings, message_of(u, rank), n, sum)
               ? travel_refuse(s, u->off, u->n, rank)
               : 0;
}

static int send_to_all(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    float *speed = q->residuals.fresh_speed;
    char *message = message_of(u, s->job.cluster->rank);
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    encode(s, false, u->off, travel_x(s, u), u->n, message);
    if (speed)
        squeeze_clear_sent(s->job.settings, message, u->n, speed + u->off);
    span_end(q->lane);
    return gather(s, u);
}

static int send_parts(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    struct message_parts parts = parts_of(s, u);
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    message_parts_encode(s, &parts, travel_x(s, u), NULL);
    span_end(q->lane);
    struct group_vector given = words(s, u, u->given);
    struct group_vector taken = words(s, u, u->messages);
    return group_all_to_all(s->group, &given, &taken, &u->ticket);
}

// This worker has got its part of a unit from all: adds up, and sends the sum
// to all.
static int send_sum(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    int rank = s->job.cluster->rank, rc;
    struct group_chunk part = part_of(s, u, rank);
    struct message_parts parts = parts_of(s, u);
    float *sum =
        q->residuals.own_fresh ? q->residuals.own_fresh + u->own_at : q->part;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    if (q->residuals.own_kept)
        memcpy(sum, q->residuals.own_kept + u->own_at, part.n * sizeof *sum);
    else
        memset(sum, 0, part.n * sizeof *sum);
    rc = message_parts_add(s, &parts, sum);
    if (!rc)
        encode(s, true, u->off + part.off, sum, part.n, message_of(u, rank));
    span_end(q->lane);
    return rc ? -1 : gather(s, u);
}

static int take(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    float *g = s->job.grads + u->off;
    int rc = 0;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    memset(g, 0, u->n * sizeof *g);
    for (int r = 0; !rc && r < s->job.cluster->world; r++) {
        struct group_chunk c = {.n = u->n};
        if (q->ops->twice)
            c = part_of(s, u, r);
        rc = add(s, u, r, c.n, g + c.off);
    }
    span_end(q->lane);
    return rc;
}

// ---- decoupled

static int open_grids(struct sync *s)
{
    struct squeezed *q = s->state;
    for (int i = 0; i < q->nunits; i++)
        q->units[i].bytes = demo_bytes(&q->units[i].grid);
    return travel_open(s);
}

static int send_fastest(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    demo_encode(s->job.settings, &u->grid, travel_x(s, u),
                message_of(u, s->job.cluster->rank), q->scratch);
    span_end(q->lane);
    return gather(s, u);
}

static int take_signs(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    int world = s->job.cluster->world, rc = 0;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    for (int r = 0; !rc && r < world; r++)
        if (demo_check(&u->grid, message_of(u, r)))
            rc = travel_refuse(s, u->off, u->n, r);
    if (!rc)
        demo_signs(&u->grid, u->messages, world, s->job.grads + u->off,
                   q->scratch);
    span_end(q->lane);
    return rc;
}

const struct squeeze_way squeeze_gathered = {
    .open = open_messages,
    .send = send_to_all,
    .take = take,
};

const struct squeeze_way squeeze_twice = {
    .own = own_part,
    .own_name = RESIDUAL_OF_SUMS,
    .open = open_messages,
    .send = send_parts,
    .send_again = send_sum,
    .take = take,
};

const struct squeeze_way squeeze_decoupled = {
    .open = open_grids,
    .send = send_fastest,
    .take = take_signs,
};
