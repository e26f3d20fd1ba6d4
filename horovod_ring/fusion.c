// fusion.c - join buckets that are next to each other, up to a size.
//
// Horovod copies small tensors into one buffer, because a message costs its
// latency 2(world-1) times whatever its size. Our gradients lie in one vector
// already, so joining neighbours costs nothing but the wait for the last of
// them. The cut is made once and is the same on every worker, so there is no
// negotiation.

#include "horovod_ring/fusion.h"

#include "base/base.h"
#include "cluster/cluster.h"

int fusion_next(struct bucket *g, const struct bucket *buckets, int n,
                size_t most)
{
    int count = 1;
    *g = buckets[0];
    for (; count < n && g->n + buckets[count].n <= most; count++) {
        CHECK(buckets[count].off + buckets[count].n == g->off);
        g->off = buckets[count].off;
        g->n += buckets[count].n;
    }
    return count;
}

int fusion_cut(struct bucket **groups, const struct sync_job *job, double mb)
{
    size_t most = (size_t)(mb * 1024 * 1024 / sizeof(float));
    int n = 0;
    *groups = mem_alloc((size_t)job->nbuckets, sizeof **groups);
    if (!*groups)
        return -1;
    for (int b = 0; b < job->nbuckets; n++)
        b +=
            fusion_next(*groups + n, job->buckets + b, job->nbuckets - b, most);
    return n;
}
