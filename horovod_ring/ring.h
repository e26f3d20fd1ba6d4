// ring.h - our own ring all-reduce: what Horovod does.

#ifndef HOROVOD_RING_RING_H
#define HOROVOD_RING_RING_H

#include "sync/sync.h"

extern const struct sync_ops sync_ring;

// The same sums, to the bit, in shared memory: suits jobs on one host.
extern const struct sync_ops sync_ring_shared;

// The same between GPUs, over NCCL's messages; where that was built.
extern const struct sync_ops sync_ring_nccl;

// Payload bytes that a step moves out of and into worker `rank`: the law, that
// is plan.h's formula for each group of buckets fused up to fusion_mb.
void ring_law(const struct sync_job *job, int rank, int world, double fusion_mb,
              size_t wire_bytes, uint64_t *out, uint64_t *in);

// The same in shared memory: bytes read from the others, and by them. For each
// group (world-1) times its own chunk, and all other chunks.
void ring_shared_law(const struct sync_job *job, int rank, int world,
                     double fusion_mb, uint64_t *out, uint64_t *in);

#endif
