// shards.h - which elements each worker owns: chunk r of every unit.
//
// A unit is the part of the vector that one exchange moves: a bucket, its ends
// moved up to multiples of `grain` (sync/bucket.h). So chunks are whole blocks
// of the norm (optim/segment.h), whatever the size of buckets. Chunks may be
// empty.
//
//     buckets           |   2   |   1   |   0   |
//     units             |    2    |   1   |  0  |
//     chunks, world 2   | r0 | r1 |r0 |r1 |r0|r1|
//
// So each exchange involves the chunks of all workers. If the whole vector were
// divided into chunks instead, each exchange would have one owner only.

#pragma once

#include "sync/sync.h"

struct unit {
    struct bucket own; // this rank's chunk of the unit; n may be 0
    size_t at;         // index of own's first element in this rank's state,
                       // which is in the order of the vector
};

struct shards {
    struct bucket *all; // the ranges of the units, the last of the vector first
    struct unit *units;
    int count;
    size_t largest; // elements of the largest unit
    size_t own;     // elements of this rank, in all units
};

// Makes the units from the job's buckets. Returns 0, or -1 after fail();
// shards_close() accepts what shards_open() left half-way.
int shards_open(struct shards *s, const struct sync_job *job, size_t grain);
void shards_close(struct shards *s);
