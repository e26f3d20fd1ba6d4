// shards.c - which elements each worker owns.

#include "zero/shards.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "sync/bucket.h"
#include "sync/members.h"

int shards_open(struct shards *s, const struct sync_job *job, size_t grain)
{
    const struct cluster *c = job->cluster;
    *s = (struct shards){0};
    s->count = bucket_align(&s->all, job->buckets, job->nbuckets, grain);
    if (s->count < 0)
        return -1;
    s->units = mem_alloc((size_t)s->count, sizeof *s->units);
    s->largest = members_largest(s->all, s->count);
    for (int i = s->count - 1; s->units && i >= 0; i--) {
        const struct bucket *all = &s->all[i];
        struct group_chunk own = group_chunk(all->n, grain, c->world, c->rank);
        s->units[i] = (struct unit){{all->off + own.off, own.n}, s->own};
        s->own += own.n;
    }
    return s->units ? 0 : -1;
}

void shards_close(struct shards *s)
{
    mem_free(s->all);
    mem_free(s->units);
}
