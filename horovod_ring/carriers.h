// carriers.h - our own carriers of group.h's verbs: a ring, over four things.

#ifndef HOROVOD_RING_CARRIERS_H
#define HOROVOD_RING_CARRIERS_H

#include "group/group.h"
#include "horovod_ring/plan.h"

// Over TCP; anywhere. Its law is plan_elements() of the wire's size.
extern const struct group_ops ring_tcp;

// In the memory of one host.
extern const struct group_ops ring_shm;

// The law of ring_shm: elements of the vector's type, whatever the wire, that
// come into a member (it reads them from the others, or they write them into
// it) or go out of it (they read, or it writes), for vectors of n elements;
// own = length of the member's chunk:
//
//     verb             in                           out
//     all_reduce       (world-1) own + n - own      the same
//       n <= 2048      (world-1) n                  the same
//     reduce_scatter   (world-1) own                n - own
//     all_gather       n - own                      (world-1) own
//     broadcast        n, 0 at the root             0, (world-1) n at the root
//     reduce           (world-1) own, and           n, n - own at the root
//                      n - own more at the root
//       n <= 2048      0, (world-1) n at the root   n, 0 at the root
size_t ring_shm_elements(const struct group_op *op, size_t grain, int rank,
                         int world, enum direction d);

// On a virtual cluster, for tests and to explain. Its law is ring_tcp's.
extern const struct group_ops ring_virtual;

// Over NCCL's messages, between GPUs; where that was built. Its law is
// ring_tcp's.
extern const struct group_ops ring_nccl;

#endif
