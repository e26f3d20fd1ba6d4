// scatter.c - each worker adds up the messages of its own part.

#include "squeeze/scatter.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "squeeze/travel.h"
#include "sync/members.h"
#include "telemetry/span.h"

#include <string.h>

static struct group_chunk chunk_of(const struct sync *s,
                                   const struct message_parts *p, int rank)
{
    return group_chunk(p->n, p->grain, s->job.cluster->world, rank);
}

void message_parts_encode(const struct sync *s, const struct message_parts *p,
                          float *x, float *speed)
{
    const struct sync_settings *set = s->job.settings;
    for (int r = 0; r < s->job.cluster->world; r++) {
        struct group_chunk c = chunk_of(s, p, r);
        uint64_t key =
            squeeze_stream(s->job.seed, s->steps + 1, s->job.cluster->rank,
                           false, p->before + p->off + c.off);
        char *message = p->given + (size_t)r * p->bytes;
        p->ops->encode(set, key, x + c.off, c.n, message, p->scratch);
        if (speed)
            squeeze_clear_sent(set, message, c.n, speed + c.off);
    }
}

int message_parts_add(const struct sync *s, const struct message_parts *p,
                      float *sum)
{
    size_t own = chunk_of(s, p, s->job.cluster->rank).n;
    for (int r = 0; r < s->job.cluster->world; r++)
        if (p->ops->add(s->job.settings, p->taken + (size_t)r * p->bytes, own,
                        sum))
            return travel_refuse(s, p->off, p->n, r);
    return 0;
}

// ---- bytes

// The largest part of a range of n elements, which is the first.
static size_t largest(size_t n, int world)
{
    return group_chunk(n, RULE_BLOCK, world, 0).n;
}

static size_t message(const struct sync_settings *s, int world, size_t n)
{
    return squeeze_find(s->squeeze)->bytes(s, largest(n, world));
}

size_t scatter_bytes(const struct sync_settings *s, int world,
                     const struct bucket *ranges, int n)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += message(s, world, ranges[i].n);
    return bytes;
}

static size_t scratch_bytes(const struct sync_settings *s, int world,
                            const struct bucket *ranges, int n)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    size_t most = largest(members_largest(ranges, n), world);
    return ops->scratch ? ops->scratch(most) : 0;
}

// Ranges that share a place are never under way at once. With shard=1 none do.
// With shard=2 and 3 a range's gradients have one of four buffers, which are
// used in turn (zero/blocks.h), and so have its messages.
enum { PLACES = 4 };

static int place_of(const struct sync_settings *s, int i, int n)
{
    bool own = s->shard < SHARD_GRADS || i == 0;
    return own ? i : i == n - 1 ? PLACES - 1 : 1 + i % 2;
}

// Where the messages of a place begin: behind those of the places before it.
static size_t place_at(const struct sync_settings *s, int world,
                       const struct bucket *ranges, int n, int place)
{
    size_t at = 0;
    for (int p = 0; p < place; p++) {
        size_t most = 0;
        for (int i = 0; i < n; i++) {
            size_t bytes = message(s, world, ranges[i].n);
            if (place_of(s, i, n) == p && bytes > most)
                most = bytes;
        }
        at += 2 * (size_t)world * most;
    }
    return at;
}

static size_t message_memory(const struct sync_settings *s, int world,
                             const struct bucket *ranges, int n)
{
    int places = s->shard < SHARD_GRADS ? n : PLACES;
    return place_at(s, world, ranges, n, places);
}

size_t scatter_memory(const struct sync_settings *s, int world,
                      const struct bucket *ranges, int n)
{
    return message_memory(s, world, ranges, n) +
           scratch_bytes(s, world, ranges, n);
}

// ---- open and close

// Lays out range i, whose messages begin at `at`.
static void lay_out(struct scatter *c, const struct sync *s,
                    const struct bucket *range, int i, char *at)
{
    size_t world = (size_t)s->job.cluster->world;
    size_t bytes = message(s->job.settings, (int)world, range->n);
    for (size_t r = 0; r < world; r++)
        c->words[(size_t)i * world + r] = bytes / sizeof(float);
    c->ranges[i] = (struct message_parts){.ops = c->ops,
                                          .scratch = c->scratch,
                                          .off = range->off,
                                          .n = range->n,
                                          .grain = RULE_BLOCK,
                                          .bytes = bytes,
                                          .given = at,
                                          .taken = at + world * bytes};
}

int scatter_open(struct scatter *c, const struct sync *s,
                 const struct bucket *ranges, int n)
{
    const struct sync_settings *set = s->job.settings;
    int world = s->job.cluster->world;
    c->ops = squeeze_find(set->squeeze);
    c->whole = true;
    if (!c->ops)
        return 0;
    size_t scratch = scratch_bytes(set, world, ranges, n);
    c->lane = spans_compute(s->job.spans);
    c->ranges = mem_alloc((size_t)n, sizeof *c->ranges);
    c->words = mem_alloc((size_t)n * (size_t)world, sizeof *c->words);
    c->messages = mem_alloc(message_memory(set, world, ranges, n), 1);
    c->scratch = mem_alloc(scratch ? scratch : 1, 1);
    if (!c->ranges || !c->words || !c->messages || !c->scratch)
        return -1;
    c->n = n;
    for (int i = 0; i < n; i++)
        lay_out(c, s, &ranges[i], i,
                c->messages +
                    place_at(set, world, ranges, n, place_of(set, i, n)));
    return residuals_open(&c->residuals, s);
}

void scatter_close(struct scatter *c)
{
    residuals_close(&c->residuals);
    mem_free(c->ranges);
    mem_free(c->words);
    mem_free(c->messages);
    mem_free(c->scratch);
}

// ---- a step

void scatter_begin(struct scatter *c, const struct sync *s)
{
    c->whole = !c->ops || s->steps < squeeze_whole_steps(s->job.settings);
}

// The messages of a range, as words of 4 bytes, which a carrier only moves.
static struct group_vector words(const struct scatter *c, const struct sync *s,
                                 int i, char *messages)
{
    size_t world = (size_t)s->job.cluster->world;
    size_t n = world * c->ranges[i].bytes / sizeof(float);
    struct group_vector v = group_floats((float *)(void *)messages, n);
    v.lengths = c->words + (size_t)i * world;
    return v;
}

int scatter_send(struct scatter *c, struct sync *s, int i, float *grads,
                 bool last, uint64_t *ticket)
{
    struct message_parts *p = &c->ranges[i];
    const struct residuals *r = &c->residuals;
    span_begin(c->lane, SPAN_COMPRESS, i);
    message_parts_encode(s, p, residuals_add(r, grads, p->off, p->n),
                         r->fresh_speed ? r->fresh_speed + p->off : NULL);
    span_end(c->lane);
    p->before += s->job.n;
    struct group_vector given = words(c, s, i, p->given);
    struct group_vector taken = words(c, s, i, p->taken);
    taken.awaited = last;
    return group_all_to_all(s->group, &given, &taken, ticket);
}

int scatter_take(const struct scatter *c, const struct sync *s, int i,
                 float *sum)
{
    const struct message_parts *p = &c->ranges[i];
    size_t own = chunk_of(s, p, s->job.cluster->rank).n;
    span_begin(c->lane, SPAN_COMPRESS, i);
    memset(sum, 0, own * sizeof *sum);
    int rc = message_parts_add(s, p, sum);
    span_end(c->lane);
    return rc;
}

void scatter_updated(struct scatter *c, bool skipped)
{
    for (int i = 0; i < c->n; i++)
        c->ranges[i].before = 0;
    if (!skipped && !c->whole)
        residuals_keep(&c->residuals);
}
