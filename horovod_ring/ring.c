// ring.c - our own ring all-reduce: what Horovod does.
//
// Buckets that are ready are joined into groups and posted to the ring, which
// moves them while backward goes on; step() awaits the last, and every worker
// updates its own parameters with the same sum.
//
//     trainer  ready ready ready ........ step |wait| update
//     ring          [group 0][group 1]..[group 2]

#include "horovod_ring/ring.h"

#include "horovod_ring/carriers.h"
#include "horovod_ring/fusion.h"
#include "horovod_ring/plan.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "sync/update.h"

#include <string.h>

struct ring {
    enum dtype wire;
    struct update update;
    struct bucket *groups; // buckets, fused
    int ngroups;
    int next; // the group that fills up next
    struct group *members;
    float scale;     // of gradients in the wire
    uint64_t ticket; // the newest
};

static void count(struct sync *s)
{
    const struct ring *r = s->state;
    const struct group_stats *g = &r->members->stats;
    s->stats.bytes_out = g->bytes_out;
    s->stats.bytes_in = g->bytes_in;
    s->stats.head_out = g->head_out;
    s->stats.head_in = g->head_in;
}

static int spread(struct sync *s, float *data)
{
    struct ring *r = s->state;
    struct group_vector v = group_floats(data, s->job.n);
    uint64_t ticket;
    v.awaited = true;
    if (group_broadcast(r->members, &v, 0, &ticket) ||
        group_await(r->members, ticket))
        return -1;
    count(s);
    return 0;
}

void ring_law(const struct sync_job *job, int rank, int world, double fusion_mb,
              size_t wire_bytes, uint64_t *out, uint64_t *in)
{
    size_t fusion = (size_t)(fusion_mb * 1024 * 1024 / sizeof(float));
    *out = *in = 0;
    for (int b = 0; b < job->nbuckets;) {
        struct bucket g;
        b += fusion_next(&g, job->buckets + b, job->nbuckets - b, fusion);
        const struct group_op sum = {.vector.n = g.n};
        const struct plan p = {.rank = rank, .world = world, .grain = 1};
        *out += plan_elements(&p, &sum, OUT) * wire_bytes;
        *in += plan_elements(&p, &sum, IN) * wire_bytes;
    }
}

static int ring_open(struct sync *s)
{
    struct ring *r = s->state;
    const struct sync_job *job = &s->job;
    const struct sync_settings *set = job->settings;
    r->wire = set->wire;
    if (update_open(&r->update, job))
        return -1;
    r->ngroups = fusion_cut(&r->groups, job, set->fusion_mb);
    if (r->ngroups < 0)
        return -1;
    size_t largest = 0;
    for (int g = 0; g < r->ngroups; g++)
        largest = r->groups[g].n > largest ? r->groups[g].n : largest;
    struct group_job members = {
        .name = s->ops->name,
        .cluster = job->cluster,
        .dev = job->dev,
        .spans = job->spans,
        .largest = set->wire == DTYPE_F32 ? 0 : largest,
        .depth = (size_t)r->ngroups,
        .thread = true,
        .slice_bytes = (size_t)set->slice_kb * 1024,
        .iface = set->iface,
    };
    r->scale = group_scale(r->wire, job->cluster->world);
    r->members = group_open(&ring_tcp, &members);
    return r->members ? 0 : -1;
}

static int ring_bcast(struct sync *s)
{
    return spread(s, s->job.params);
}

static int ring_ready(struct sync *s, int b)
{
    struct ring *r = s->state;
    const struct bucket *g = &r->groups[r->next];
    if (s->job.buckets[b].off > g->off)
        return 0;
    r->next = (r->next + 1) % r->ngroups;
    struct group_vector v = group_floats(s->job.grads + g->off, g->n);
    v.wire = r->wire;
    v.scale = r->scale;
    v.awaited = r->next == 0;
    return group_all_reduce(r->members, &v, &r->ticket);
}

static int ring_step(struct sync *s, const struct sync_in *in,
                     struct sync_out *out)
{
    struct ring *r = s->state;
    if (group_await(r->members, r->ticket))
        return fail("%s (step %d)", fail_message(), in->step);
    count(s);
    return update_step(&r->update, &s->job, in, 1 / r->scale, out);
}

static int ring_get_state(struct sync *s, float *const *slots)
{
    const struct ring *r = s->state;
    return s->job.cluster->rank ? 0 : update_get(&r->update, &s->job, slots);
}

static int spread_slot(void *ctx, int i, float *vector)
{
    (void)i;
    return spread(ctx, vector);
}

static int ring_set_state(struct sync *s, const float *const *slots)
{
    struct ring *r = s->state;
    return update_set(&r->update, &s->job, slots, spread_slot, s);
}

static void ring_close(struct sync *s)
{
    struct ring *r = s->state;
    group_close(&r->members);
    mem_free(r->groups);
    update_close(&r->update, &s->job);
}

const struct sync_ops sync_ring = {
    .name = "ring",
    .transport = "tcp",
    .help = "our own ring all-reduce over TCP; every worker updates",
    .state_size = sizeof(struct ring),
    .open = ring_open,
    .bcast = ring_bcast,
    .ready = ring_ready,
    .step = ring_step,
    .get_state = ring_get_state,
    .set_state = ring_set_state,
    .close = ring_close,
};
