// fusion.h - join buckets that are next to each other, up to a size.

#ifndef HOROVOD_RING_FUSION_H
#define HOROVOD_RING_FUSION_H

#include "sync/sync.h"

// Join the first of n > 0 buckets with those after it while they are at most
// `most` elements together. How many buckets went into *g.
int fusion_next(struct bucket *g, const struct bucket *buckets, int n,
                size_t most);

// All groups of a job's buckets joined up to `mb` MiB. Caller frees *groups,
// with mem_free(). How many, or -1 after fail().
int fusion_cut(struct bucket **groups, const struct sync_job *job, double mb);

#endif
