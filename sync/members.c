// members.c - opens the group of a strategy's workers.

#include "sync/members.h"

#include "cluster/cluster.h"
#include "config/backends.h"
#include "group/group.h"

size_t members_largest(const struct bucket *b, int n)
{
    size_t most = 0;
    for (int i = 0; i < n; i++)
        most = b[i].n > most ? b[i].n : most;
    return most;
}

int members_open(struct sync *s, const struct members_need *need)
{
    const struct sync_job *job = &s->job;
    const struct sync_settings *set = job->settings;
    struct group_job members = {
        .name = job->backend->name,
        .cluster = job->cluster,
        .dev = job->dev,
        .spans = job->spans,
        .grain = need->grain,
        .largest = set->wire == DTYPE_F32 ? 0 : need->largest,
        .depth = need->depth,
        .thread = true,
        .pairs = need->pairs,
        .star = need->star,
        .slice_bytes = (size_t)set->slice_kb * 1024,
        .iface = set->iface,
        .algorithm = (int)set->algorithm,
        .ctas = set->ctas,
    };
    s->scale = group_scale(set->wire, job->cluster->world);
    s->group = group_open(s->carrier, &members);
    return s->group ? 0 : -1;
}

int members_await(struct sync *s, uint64_t ticket)
{
    if (group_await(s->group, ticket))
        return -1;
    s->stats = s->group->stats;
    return 0;
}

int members_broadcast(struct sync *s, float *v, size_t n)
{
    struct group_vector all = group_floats(v, n);
    uint64_t ticket;
    if (!s->group)
        return 0;
    all.awaited = true;
    return group_broadcast(s->group, &all, 0, &ticket) ||
                   members_await(s, ticket)
               ? -1
               : 0;
}

int members_copy(struct sync *s, int slot, float *v)
{
    return s->ops->broadcast ? s->ops->broadcast(s, slot, v)
                             : members_broadcast(s, v, s->job.n);
}
