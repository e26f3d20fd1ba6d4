// squeezed.c - replicas that exchange compressed gradients.
//
// Each range of the gradients (a unit) is compressed as soon as backward has
// filled it, and its message travels while backward goes on:
//
//     trainer  |encode| .. |encode| .. |encode| |await, decode| update
//     group            [messages 0 ][messages 1][messages 2]
//
// After the last message every worker has the same sum in its gradients, and
// sync.c updates as if they had travelled whole. With a compressor that sends
// twice (squeeze.h), the first messages are exchanged by all_to_all; this
// worker then adds up its part of each unit, encodes that sum, and gathers.
//
// The residual, what the messages lack, exists twice: `kept` is that of the
// last update, `fresh` that of the present step. A step that is skipped, as
// after an overflow, leaves `kept` as it was. So no residual keeps a NaN.
//
// State: the residuals are slots of the checkpoint. In a world of w' workers
// after one of w, worker r takes the sum of the residuals of r, r + w', .. and
// multiplies it by w'/w, because sums over workers are divided by the world.

#include "squeeze/squeezed.h"

#include "sync/members.h"
#include "sync/slots.h"

#include "base/base.h"
#include "base/rng.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "squeeze/squeeze.h"
#include "telemetry/span.h"

#include <string.h>

struct unit {
    size_t off, n;
    size_t bytes;   // of a message
    char *messages; // one of each worker, by rank
    char *given;    // those that this worker gives to each, if it sends twice
    size_t sum_at;  // where its part begins in struct residual's `sums`
    uint64_t ticket;
};

// What messages lack. NULL with feedback=0.
struct residual {
    float *gradients; // n elements
    float *sums;      // of this worker's parts, if it sends twice
};

struct squeezed {
    const struct squeeze_ops *ops;
    struct group *group;
    struct unit *units;
    int nunits;
    int next;   // the unit that fills up next
    bool plain; // this step's units travel whole
    struct residual kept, fresh;
    float *part;   // the sum of this worker's part of a unit
    size_t nparts; // elements of this worker's parts of all units
    char *messages;
    void *scratch;
    struct span_lane *lane;
};

static struct group_chunk part_of(const struct sync *s, const struct unit *u,
                                  int rank)
{
    return group_chunk(u->n, 1, s->job.cluster->world, rank);
}

// ---- open

static int alloc_floats(float **v, size_t n)
{
    *v = mem_alloc(n, sizeof **v);
    return *v ? 0 : -1;
}

static int open_residual(const struct sync *s, struct residual *r)
{
    const struct squeezed *q = s->state;
    if (!s->job.settings->feedback)
        return 0;
    return alloc_floats(&r->gradients, s->job.n) ||
                   (q->ops->twice && alloc_floats(&r->sums, q->nparts))
               ? -1
               : 0;
}

static int open_units(struct sync *s)
{
    struct squeezed *q = s->state;
    const struct sync_settings *set = s->job.settings;
    int world = s->job.cluster->world;
    struct bucket *cut;
    int n = squeezed_units(&s->job, &cut);
    q->units = n < 0 ? NULL : mem_alloc((size_t)n, sizeof *q->units);
    q->nunits = n;
    for (int i = 0; q->units && i < n; i++) {
        struct unit *u = &q->units[i];
        *u = (struct unit){.off = cut[i].off, .n = cut[i].n};
        u->bytes = squeeze_message(set, world, u->n);
        u->sum_at = q->nparts;
        q->nparts += part_of(s, u, s->job.cluster->rank).n;
    }
    mem_free(cut);
    return q->units ? 0 : -1;
}

// One block for the messages of all units: all may be under way at once.
static int open_messages(struct sync *s)
{
    struct squeezed *q = s->state;
    size_t world = (size_t)s->job.cluster->world, most = 0, bytes = 0;
    for (int i = 0; i < q->nunits; i++) {
        bytes += (1 + q->ops->twice) * world * q->units[i].bytes;
        most = q->units[i].n > most ? q->units[i].n : most;
    }
    q->messages = mem_alloc(bytes, 1);
    q->scratch = mem_alloc(q->ops->scratch ? q->ops->scratch(most) : 1, 1);
    if (!q->messages || !q->scratch || alloc_floats(&q->part, most))
        return -1;
    char *at = q->messages;
    for (int i = 0; i < q->nunits; i++) {
        struct unit *u = &q->units[i];
        u->messages = at;
        at += world * u->bytes;
        u->given = at;
        at += q->ops->twice ? world * u->bytes : 0;
    }
    return 0;
}

static int squeezed_open(struct sync *s)
{
    struct squeezed *q = s->state;
    q->ops = squeeze_find(s->job.settings->squeeze);
    q->lane = spans_compute(s->job.spans);
    if (open_units(s) || open_messages(s) || open_residual(s, &q->kept) ||
        open_residual(s, &q->fresh))
        return -1;
    const struct members_need need = {
        .grain = 1, // a message is one chunk
        .depth = (1 + (size_t)q->ops->twice) * (size_t)q->nunits,
        .pairs = q->ops->twice,
    };
    q->group = members_open(s, &need);
    s->scale = 1;
    return q->group ? 0 : -1;
}

static int squeezed_broadcast(struct sync *s, int slot, float *v)
{
    const struct squeezed *q = s->state;
    (void)slot;
    return members_broadcast(s, q->group, v);
}

// ---- a step

// The stream of random choices for a part of the vector that begins at `off`.
// No other step, rank or part draws the same numbers, nor does the sum.
static uint64_t stream(const struct sync *s, bool sum, size_t off)
{
    uint64_t rank = (uint64_t)s->job.cluster->rank;
    uint64_t key = rng_key(s->job.seed, s->steps + 1);
    return rng_key(rng_key(key, 2 * rank + sum), off);
}

// Writes the message of x, which begins at `off` of the whole vector.
static void encode(struct sync *s, bool sum, size_t off, float *x, size_t n,
                   char *message)
{
    struct squeezed *q = s->state;
    q->ops->encode(s->job.settings, stream(s, sum, off), x, n, message,
                   q->scratch);
}

// sum += message `rank` of a unit, which has n elements.
static int add(struct sync *s, const struct unit *u, int rank, size_t n,
               float *sum)
{
    const struct squeezed *q = s->state;
    const char *message = u->messages + (size_t)rank * u->bytes;
    return q->ops->add(s->job.settings, message, n, sum)
               ? fail("%s: the message of rank %d for elements %zu to %zu: %s",
                      s->job.backend->name,
                      cluster_job_rank(s->job.cluster->ranks, rank), u->off,
                      u->off + u->n, fail_message())
               : 0;
}

// Posts an exchange of messages. They travel as words of 4 bytes, which a
// carrier moves and does not look at.
static struct group_vector words(const struct sync *s, const struct unit *u,
                                 char *messages)
{
    size_t bytes = (size_t)s->job.cluster->world * u->bytes;
    return group_floats((float *)(void *)messages, bytes / sizeof(float));
}

static int post_whole(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    struct group_vector v = group_floats(s->job.grads + u->off, u->n);
    v.awaited = u == &q->units[q->nunits - 1];
    return group_all_reduce(q->group, &v, &u->ticket);
}

static int post_gather(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    struct group_vector v = words(s, u, u->messages);
    v.awaited = u == &q->units[q->nunits - 1];
    return group_all_gather(q->group, &v, &u->ticket);
}

// x = gradients + residual, in the vector of the next residual.
static float *with_residual(struct sync *s, const struct unit *u)
{
    struct squeezed *q = s->state;
    float *g = s->job.grads + u->off;
    if (!q->kept.gradients)
        return g;
    const float *kept = q->kept.gradients + u->off;
    float *x = q->fresh.gradients + u->off;
    for (size_t i = 0; i < u->n; i++)
        x[i] = g[i] + kept[i];
    return x;
}

static int send_unit(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    int rank = s->job.cluster->rank, world = s->job.cluster->world;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    float *x = with_residual(s, u);
    if (!q->ops->twice)
        encode(s, false, u->off, x, u->n,
               u->messages + (size_t)rank * u->bytes);
    for (int r = 0; q->ops->twice && r < world; r++) {
        struct group_chunk c = part_of(s, u, r);
        encode(s, false, u->off + c.off, x + c.off, c.n,
               u->given + (size_t)r * u->bytes);
    }
    span_end(q->lane);
    if (!q->ops->twice)
        return post_gather(s, u);
    struct group_vector given = words(s, u, u->given);
    struct group_vector taken = words(s, u, u->messages);
    return group_all_to_all(q->group, &given, &taken, &u->ticket);
}

static int squeezed_ready(struct sync *s, int b)
{
    struct squeezed *q = s->state;
    if (b == 0) {
        q->next = 0;
        q->plain = s->steps < (uint64_t)s->job.settings->squeeze_after;
    }
    for (; q->next < q->nunits; q->next++) {
        struct unit *u = &q->units[q->next];
        if (s->job.buckets[b].off > u->off)
            return 0; // it is not full yet
        if (q->plain ? post_whole(s, u) : send_unit(s, u))
            return -1;
    }
    return 0;
}

static int squeezed_step(struct sync *s, const struct sync_in *in,
                         struct sync_out *out)
{
    (void)s;
    (void)in;
    (void)out;
    return 0;
}

// This worker has got its part of a unit from all: adds up, and sends the sum
// to all.
static int send_sum(struct sync *s, struct unit *u)
{
    struct squeezed *q = s->state;
    int rank = s->job.cluster->rank, rc = 0;
    struct group_chunk own = part_of(s, u, rank);
    float *sum = q->fresh.sums ? q->fresh.sums + u->sum_at : q->part;
    if (group_await(q->group, u->ticket))
        return -1;
    span_begin(q->lane, SPAN_COMPRESS, (int)(u - q->units));
    if (q->kept.sums)
        memcpy(sum, q->kept.sums + u->sum_at, own.n * sizeof *sum);
    else
        memset(sum, 0, own.n * sizeof *sum);
    for (int r = 0; !rc && r < s->job.cluster->world; r++)
        rc = add(s, u, r, own.n, sum);
    if (!rc)
        encode(s, true, u->off + own.off, sum, own.n,
               u->messages + (size_t)rank * u->bytes);
    span_end(q->lane);
    return rc ? -1 : post_gather(s, u);
}

// Leaves the sum of a unit in the gradients.
static int take_unit(struct sync *s, const struct unit *u)
{
    struct squeezed *q = s->state;
    float *g = s->job.grads + u->off;
    int rc = 0;
    if (group_await(q->group, u->ticket))
        return -1;
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

static int squeezed_settle(struct sync *s)
{
    struct squeezed *q = s->state;
    int rc = 0, n = q->nunits;
    if (q->plain)
        rc = group_await(q->group, q->units[n - 1].ticket);
    for (int i = 0; !q->plain && q->ops->twice && !rc && i < n; i++)
        rc = send_sum(s, &q->units[i]);
    for (int i = 0; !q->plain && !rc && i < n; i++)
        rc = take_unit(s, &q->units[i]);
    s->stats = q->group->stats;
    return rc;
}

static void squeezed_updated(struct sync *s, bool skipped)
{
    struct squeezed *q = s->state;
    struct residual kept = q->kept;
    if (skipped || q->plain)
        return;
    q->kept = q->fresh;
    q->fresh = kept;
}

// ---- state: the optimiser's slots; then the residual of the sums, if it sends
// twice; then those of worker 0, 1, ..

static int sums_slot(const struct sync *s)
{
    return optim_slots(s->job.optim);
}

static int worker_slot(const struct sync *s, int rank)
{
    const struct squeezed *q = s->state;
    return sums_slot(s) + q->ops->twice + rank;
}

static int squeezed_slots(const struct sync *s)
{
    const struct squeezed *q = s->state;
    return q->kept.gradients ? worker_slot(s, s->job.cluster->world)
                             : sums_slot(s);
}

static void squeezed_slot_name(const struct sync *s, int slot,
                               char name[SYNC_SLOT_NAME])
{
    int rank = slot - worker_slot(s, 0);
    if (rank >= 0)
        snprintf(name, SYNC_SLOT_NAME, "residual_of_worker_%d", rank);
    else if (slot == sums_slot(s))
        snprintf(name, SYNC_SLOT_NAME, "residual_of_sums");
    else
        snprintf(name, SYNC_SLOT_NAME, "%s",
                 optim_slot_name(s->job.optim, slot));
}

// Visits this worker's parts of all units.
static int visit_sums(struct sync *s, sync_visit *visit, void *ctx)
{
    struct squeezed *q = s->state;
    for (int i = 0; q->kept.sums && i < q->nunits; i++) {
        const struct unit *u = &q->units[i];
        struct group_chunk c = part_of(s, u, s->job.cluster->rank);
        int rc = c.n ? visit(ctx, sums_slot(s), u->off + c.off,
                             q->kept.sums + u->sum_at, c.n)
                     : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static int squeezed_save(struct sync *s, sync_visit *visit, void *ctx)
{
    const struct squeezed *q = s->state;
    if (slots_save(s, visit, ctx) || visit_sums(s, visit, ctx))
        return -1;
    return q->kept.gradients ? visit(ctx, worker_slot(s, s->job.cluster->rank),
                                     0, q->kept.gradients, s->job.n)
                             : 0;
}

// Adds the residuals that this worker takes. *world becomes the number of
// workers that saved theirs. `fresh` is free between two steps.
static int take_residuals(struct sync *s, sync_visit *visit, void *ctx,
                          int *world)
{
    struct squeezed *q = s->state;
    int rc = 0, now = s->job.cluster->world;
    float *one = q->fresh.gradients;
    *world = 0;
    for (int r = 0;; r++) {
        rc = visit(ctx, worker_slot(s, r), 0, one, s->job.n);
        if (rc)
            return rc < 0 ? -1 : 0; // absent: there is no such worker
        *world = r + 1;
        for (size_t i = 0; r % now == s->job.cluster->rank && i < s->job.n; i++)
            q->kept.gradients[i] += one[i];
    }
}

static void multiply(float *v, size_t n, float by)
{
    for (size_t i = 0; v && i < n; i++)
        v[i] *= by;
}

static int squeezed_load(struct sync *s, sync_visit *visit, void *ctx)
{
    struct squeezed *q = s->state;
    int then;
    if (slots_load(s, visit, ctx))
        return -1;
    if (!q->kept.gradients)
        return 0;
    memset(q->kept.gradients, 0, s->job.n * sizeof(float));
    if (visit_sums(s, visit, ctx) < 0 || take_residuals(s, visit, ctx, &then))
        return -1;
    float by = then ? (float)s->job.cluster->world / (float)then : 1;
    multiply(q->kept.gradients, s->job.n, by);
    multiply(q->kept.sums, q->nparts, by);
    return 0;
}

static void squeezed_close(struct sync *s)
{
    struct squeezed *q = s->state;
    group_close(&q->group);
    mem_free(q->units);
    mem_free(q->messages);
    mem_free(q->scratch);
    mem_free(q->part);
    for (int i = 0; i < 2; i++) {
        struct residual *r = i ? &q->fresh : &q->kept;
        mem_free(r->gradients);
        mem_free(r->sums);
    }
}

const struct sync_ops sync_squeezed = {
    .state_size = sizeof(struct squeezed),
    .open = squeezed_open,
    .broadcast = squeezed_broadcast,
    .ready = squeezed_ready,
    .step = squeezed_step,
    .settle = squeezed_settle,
    .updated = squeezed_updated,
    .slots = squeezed_slots,
    .slot_name = squeezed_slot_name,
    .save = squeezed_save,
    .load = squeezed_load,
    .close = squeezed_close,
};
