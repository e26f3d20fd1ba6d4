// shards.h - which elements each worker owns: chunk r of every unit.
//
// A unit is what travels at once: a fused bucket (sync/fusion.h), its ends
// moved up to multiples of `grain`, so that chunks are whole blocks of the norm
// (optim/segment.h) whatever the size of buckets. Chunks may be empty.
//
//     fused buckets     |   2   |   1   |   0   |
//     units             |    2    |   1   |  0  |
//     chunks, world 2   | r0 | r1 |r0 |r1 |r0|r1|
//
// So each exchange is spread over all workers, where a cut of the whole vector
// would make each the business of one.

#ifndef ZERO_SHARDS_H
#define ZERO_SHARDS_H

#include "sync/sync.h"

struct unit {
    struct bucket all; // what it holds
    struct bucket own; // this rank's chunk of it; n may be 0
    size_t at;         // of own's first element in this rank's state
};

struct shards {
    struct unit *units; // the last of the vector first
    int count;
    size_t largest; // elements of the largest unit
    size_t own;     // elements of this rank, in all units
};

// Of the job's buckets as its settings fuse them. 0, or -1 after fail(). Close
// takes what open left half-way.
int shards_open(struct shards *s, const struct sync_job *job, size_t grain);
void shards_close(struct shards *s);

#endif
