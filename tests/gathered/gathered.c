// gathered.c - the strategy that tests/add_backend.py adds to a copy of the
// tree: replicas whose gradients are summed in chunks, then gathered.
//
// A bucket's reduce-scatter begins as soon as backward has filled it. step()
// begins a bucket's all-gather as soon as its reduce-scatter is complete. So
// every worker has the sums that an all-reduce gives.

#include "sync/sync.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "group/group.h"

struct gathered {
    struct group *group;
    uint64_t *summed; // tickets of the buckets' sums
};

static int gathered_open(struct sync *s)
{
    struct gathered *g = s->state;
    const struct sync_job *job = &s->job;
    struct group_job members = {
        .name = job->backend->name,
        .cluster = job->cluster,
        .dev = job->dev,
        .spans = job->spans,
        .depth = 2 * (size_t)job->nbuckets,
        .thread = true,
        .slice_bytes = (size_t)job->settings->slice_kb * 1024,
        .iface = job->settings->iface,
    };
    g->group = group_open(s->carrier, &members);
    g->summed = mem_alloc((size_t)job->nbuckets, sizeof *g->summed);
    return g->group && g->summed ? 0 : -1;
}

static int finish(struct sync *s, uint64_t ticket)
{
    const struct gathered *g = s->state;
    if (group_await(g->group, ticket))
        return -1;
    s->stats = g->group->stats;
    return 0;
}

static int gathered_broadcast(struct sync *s, int slot, float *v)
{
    struct gathered *g = s->state;
    struct group_vector all = group_floats(v, s->job.n);
    uint64_t ticket;
    (void)slot;
    return group_broadcast(g->group, &all, 0, &ticket) ? -1 : finish(s, ticket);
}

static struct group_vector bucket(const struct sync *s, int b)
{
    const struct bucket *k = &s->job.buckets[b];
    return group_floats(s->job.grads + k->off, k->n);
}

static int gathered_ready(struct sync *s, int b)
{
    struct gathered *g = s->state;
    struct group_vector v = bucket(s, b);
    return group_reduce_scatter(g->group, &v, &g->summed[b]);
}

static int gathered_step(struct sync *s, const struct sync_in *in,
                         struct sync_out *out)
{
    struct gathered *g = s->state;
    uint64_t ticket = 0;
    (void)in;
    (void)out;
    for (int b = 0; b < s->job.nbuckets; b++) {
        struct group_vector v = bucket(s, b);
        if (group_await(g->group, g->summed[b]) ||
            group_all_gather(g->group, &v, &ticket))
            return -1;
    }
    return finish(s, ticket);
}

static void gathered_close(struct sync *s)
{
    struct gathered *g = s->state;
    group_close(&g->group);
    mem_free(g->summed);
}

const struct sync_ops sync_gathered = {
    .state_size = sizeof(struct gathered),
    .open = gathered_open,
    .broadcast = gathered_broadcast,
    .ready = gathered_ready,
    .step = gathered_step,
    .close = gathered_close,
};
