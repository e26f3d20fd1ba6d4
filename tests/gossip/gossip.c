// gossip.c - the strategy that docs/first_hour.md adds to a copy of the tree:
// every worker trains alone, and every H = every= steps the workers average
// their parameters in pairs.
//
//     round 1   0 <-> 1   2 <-> 3      each pair has the mean of two
//     round 2   0 <-> 2   1 <-> 3      each pair has the mean of four
//
// In round k, worker r exchanges all its parameters with worker r xor 2^(k-1),
// and both take the mean. After log2(n) rounds all n workers have the same
// mean, to the bit, since a + b = b + a. So n must be a power of two. Gossip
// (Boyd et al., "Randomized Gossip Algorithms", 2006) draws pairs by chance.

#include "sync/sync.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "sync/members.h"

struct gossip {
    float *theirs; // the other worker's parameters
};

static int gossip_open(struct sync *s)
{
    struct gossip *g = s->state;
    const struct sync_job *job = &s->job;
    const struct members_need need = {.depth = 2, .pairs = true};
    int world = job->cluster->world;
    if (world & (world - 1))
        return fail("sync=gossip: %d workers are no power of two; try: "
                    "workers=2, 4 or 8",
                    world);
    if (members_open(s, &need))
        return -1;
    g->theirs = mem_alloc(job->n, sizeof *g->theirs);
    s->scale = 1 / (float)world; // grads are this worker's own
    return g->theirs ? 0 : -1;
}

// One round: both members of a pair take the mean of their parameters.
static int meet(struct sync *s, int other)
{
    struct gossip *g = s->state;
    struct group_vector mine = group_floats(s->job.params, s->job.n);
    struct group_vector theirs = group_floats(g->theirs, s->job.n);
    uint64_t ticket;
    if (group_send(s->group, &mine, other, NULL) ||
        group_recv(s->group, &theirs, other, &ticket) ||
        group_await(s->group, ticket))
        return -1;
    for (size_t i = 0; i < s->job.n; i++)
        s->job.params[i] = (s->job.params[i] + g->theirs[i]) / 2;
    return 0;
}

static int gossip_merge(struct sync *s)
{
    const struct cluster *c = s->job.cluster;
    for (int bit = 1; bit < c->world; bit *= 2)
        if (meet(s, c->rank ^ bit))
            return -1;
    s->stats = s->group->stats;
    return 0;
}

static void gossip_close(struct sync *s)
{
    struct gossip *g = s->state;
    mem_free(g->theirs);
}

const struct sync_ops sync_gossip = {
    .state_size = sizeof(struct gossip),
    .open = gossip_open,
    .merge = gossip_merge,
    .close = gossip_close,
};
