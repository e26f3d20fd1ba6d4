// fusion.h - join buckets that are next to each other, up to a size.

#ifndef HOROVOD_RING_FUSION_H
#define HOROVOD_RING_FUSION_H

#include "sync/sync.h"

// Read fusion_mb= of a job. By default a quarter MiB a worker, and at least 1:
// a group costs 2(world-1) latencies, so it must grow with the world. 0, or -1
// after fail().
int fusion_read(const struct sync_job *job, double *mb);

// Join the first of n > 0 buckets with those after it while they are at most
// `most` elements together. How many buckets went into *g.
int fusion_next(struct bucket *g, const struct bucket *buckets, int n,
                size_t most);

// All groups of a job's buckets joined up to `mb` MiB. Caller frees *groups,
// with mem_free(). How many, or -1 after fail().
int fusion_cut(struct bucket **groups, const struct sync_job *job, double mb);

#endif
