// carriers.h - our own carriers, which do the verbs of group.h: rings over TCP,
// NCCL and a virtual cluster, and sums in shared memory.

#pragma once

#include "group/group.h"
#include "horovod_ring/plan.h"

// Over TCP, between any hosts. Its law is plan_elements(), in elements of the
// wire's format.
extern const struct group_ops ring_tcp;

// In the shared memory of one host.
extern const struct group_ops ring_shm;

// The law of ring_shm: how many elements come into a member or go out of it,
// for a vector of n elements. They are counted in the vector's type, whatever
// the wire. An element comes in if the member reads it from another member, or
// another member writes it into this member's vector. It goes out in the two
// opposite cases. own is the length of the member's chunk:
//
//     verb             in                           out
//     all_reduce       (world-1) own + n - own      the same
//       n <= 2048      (world-1) n                  the same
//     reduce_scatter   (world-1) own                n - own
//     all_gather       n - own                      (world-1) own
//     broadcast        n, 0 at the root             0, (world-1) n at the root
//     reduce           (world-1) own; at the root   n; at the root n - own
//                      n - own more
//       n <= 2048      0, (world-1) n at the root   n, 0 at the root
//     all_to_all       what it takes, less own      what it gives, less own
size_t ring_shm_elements(const struct group_op *op, size_t grain, int rank,
                         int world, enum direction d);

// ring_shm if it can join the members, and those of all other parts of the job;
// else, or with `tcp`, ring_tcp. NULL after fail(). All members must call it,
// as group_is_supported().
const struct group_ops *ring_choose(const struct group_job *job, bool tcp);

// On a virtual cluster, for tests and for `lockstep explain`. Its law is that
// of ring_tcp.
extern const struct group_ops ring_virtual;

// Over NCCL's messages, between GPUs. It exists only in builds with NCCL. Its
// law is that of ring_tcp.
extern const struct group_ops ring_nccl;
