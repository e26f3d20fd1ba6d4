// replicas.c - every worker holds all parameters; gradients are all-reduced.
//
// Buckets, aligned to the carrier's grain, are all-reduced as backward fills
// them; settle() waits for the last. Then sync.c updates on every worker, with
// the same sum, so that the replicas stay bit-identical. On a device the update
// is queued behind the sum, before settle() waits.
//
//     trainer  ready ready ready ....... step |settle| update
//     group         [bucket 0][bucket 1]..[bucket 2]

#include "sync/replicas.h"

#include "sync/bucket.h"
#include "sync/members.h"

#include "base/base.h"
#include "group/group.h"

struct replicas {
    struct bucket *units; // aligned buckets
    int count;
    int next;        // the unit that fills up next
    uint64_t ticket; // of the newest exchange
};

static int replicas_open(struct sync *s)
{
    struct replicas *r = s->state;
    const struct sync_job *job = &s->job;
    size_t grain = s->carrier->grain ? s->carrier->grain : 1;
    r->count = bucket_align(&r->units, job->buckets, job->nbuckets, grain);
    if (r->count < 0)
        return -1;
    const struct members_need need = {
        .largest = members_largest(r->units, r->count),
        .depth = (size_t)r->count,
    };
    if (members_open(s, &need))
        return -1;
    return group_share(s->group, job->grads, job->n * sizeof *job->grads);
}

static int replicas_ready(struct sync *s, int b)
{
    struct replicas *r = s->state;
    const struct bucket *u = &r->units[r->next];
    if (s->job.buckets[b].off > u->off)
        return 0; // it is not full yet
    r->next = (r->next + 1) % r->count;
    struct group_vector v = group_floats(s->job.grads + u->off, u->n);
    v.wire = s->job.settings->wire;
    v.scale = s->scale;
    v.awaited = r->next == 0;
    return group_all_reduce(s->group, &v, &r->ticket);
}

static int replicas_follow(struct sync *s)
{
    const struct replicas *r = s->state;
    return group_follow(s->group, r->ticket);
}

static int replicas_settle(struct sync *s)
{
    const struct replicas *r = s->state;
    return members_await(s, r->ticket);
}

static void replicas_close(struct sync *s)
{
    struct replicas *r = s->state;
    mem_free(r->units);
}

const struct sync_ops sync_replicas = {
    .state_size = sizeof(struct replicas),
    .open = replicas_open,
    .ready = replicas_ready,
    .follow = replicas_follow,
    .settle = replicas_settle,
    .close = replicas_close,
};
