// shards.c - which elements each worker owns.

#include "zero/shards.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "group/group.h"
#include "sync/bucket.h"
#include "sync/members.h"

static struct bucket own_chunk(const struct cluster *c,
                               const struct bucket *all, size_t grain)
{
    struct group_chunk own = group_chunk(all->n, grain, c->world, c->rank);
    return (struct bucket){.off = all->off + own.off, .n = own.n};
}

int shards_open(struct shards *s, const struct sync_job *job, size_t grain)
{
    struct bucket *cut;
    int count = bucket_align(&cut, job->buckets, job->nbuckets, grain);
    if (count < 0)
        return -1;
    *s = (struct shards){.count = count,
                         .units = mem_alloc((size_t)count, sizeof *s->units)};
    for (int i = count - 1; s->units && i >= 0; i--) {
        struct unit *u = &s->units[i];
        u->all = cut[i];
        u->own = own_chunk(job->cluster, &u->all, grain);
        u->at = s->own;
        s->own += u->own.n;
    }
    s->largest = members_largest(cut, count);
    mem_free(cut);
    return s->units ? 0 : -1;
}

void shards_close(struct shards *s)
{
    mem_free(s->units);
}
