// gathered.c - the strategy that tests/add_backend.py adds to a copy of the
// tree: replicas whose gradients are summed in chunks, then gathered.
//
// A bucket's reduce-scatter begins as soon as backward has filled it. step()
// begins a bucket's all-gather as soon as its reduce-scatter is complete. So
// every worker has the sums that an all-reduce gives.

#include "sync/sync.h"

#include "base/base.h"
#include "group/group.h"
#include "sync/members.h"

struct gathered {
    uint64_t *summed; // tickets of the buckets' sums
};

static int gathered_open(struct sync *s)
{
    struct gathered *g = s->state;
    const struct sync_job *job = &s->job;
    const struct members_need need = {.depth = 2 * (size_t)job->nbuckets};
    g->summed = mem_alloc((size_t)job->nbuckets, sizeof *g->summed);
    return g->summed ? members_open(s, &need) : -1;
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
    return group_reduce_scatter(s->group, &v, &g->summed[b]);
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
        if (group_await(s->group, g->summed[b]) ||
            group_all_gather(s->group, &v, &ticket))
            return -1;
    }
    return members_await(s, ticket);
}

static void gathered_close(struct sync *s)
{
    struct gathered *g = s->state;
    mem_free(g->summed);
}

const struct sync_ops sync_gathered = {
    .state_size = sizeof(struct gathered),
    .open = gathered_open,
    .ready = gathered_ready,
    .step = gathered_step,
    .close = gathered_close,
};
