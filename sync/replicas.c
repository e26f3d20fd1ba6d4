// replicas.c - every worker holds all parameters; gradients are all-reduced.
//
// Buckets are joined into fused buckets (fusion.h) and all-reduced as backward
// fills them; settle() waits for the last. Then sync.c updates on every worker,
// with the same sum, so that the replicas stay bit-identical. On a device the
// update is queued behind the sum, before settle() waits.
//
//     trainer  ready ready ready ....... step |settle| update
//     group         [bucket 0][bucket 1]..[bucket 2]

#include "sync/replicas.h"

#include "sync/fusion.h"
#include "sync/members.h"

#include "base/base.h"
#include "group/group.h"

struct replicas {
    struct bucket *fused;
    int nfused;
    int next;        // the fused bucket that fills up next
    uint64_t ticket; // of the newest exchange
};

static int replicas_open(struct sync *s)
{
    struct replicas *r = s->state;
    const struct sync_job *job = &s->job;
    r->nfused =
        fusion_cut(&r->fused, job->buckets, job->nbuckets,
                   s->carrier->on_device ? 0 : job->settings->fusion_mb);
    if (r->nfused < 0)
        return -1;
    if (s->carrier->grain)
        r->nfused = fusion_align(r->fused, r->nfused, s->carrier->grain);
    const struct members_need need = {
        .largest = members_largest(r->fused, r->nfused),
        .depth = (size_t)r->nfused,
    };
    if (members_open(s, &need))
        return -1;
    return group_share(s->group, job->grads, job->n * sizeof *job->grads);
}

static int replicas_ready(struct sync *s, int b)
{
    struct replicas *r = s->state;
    const struct bucket *f = &r->fused[r->next];
    if (s->job.buckets[b].off > f->off)
        return 0; // it is not full yet
    r->next = (r->next + 1) % r->nfused;
    struct group_vector v = group_floats(s->job.grads + f->off, f->n);
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
    mem_free(r->fused);
}

const struct sync_ops sync_replicas = {
    .state_size = sizeof(struct replicas),
    .open = replicas_open,
    .ready = replicas_ready,
    .follow = replicas_follow,
    .settle = replicas_settle,
    .close = replicas_close,
};
