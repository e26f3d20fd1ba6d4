// fusion.h - join buckets that are next to each other, up to a size.
//
// Horovod copies small tensors into one buffer, because a message costs its
// latency 2(world-1) times whatever its size. Our gradients lie in one vector
// already, so joining neighbours costs nothing but the wait for the last of
// them. The cut is made once and is the same on every worker, so there is no
// negotiation.

#ifndef SYNC_FUSION_H
#define SYNC_FUSION_H

#include "sync/sync.h"

// Join all n buckets up to `mb` MiB of fp32; 0: each stays alone. Caller frees
// *fused with mem_free(). Returns how many there are, or -1 after fail().
int fusion_cut(struct bucket **fused, const struct bucket *buckets, int n,
               double mb);

// Move the borders between n fused buckets up to multiples of `grain` elements
// (at least 1); those that hold nothing then are left out. Each is still full
// when its last bucket is. Returns how many there are.
int fusion_align(struct bucket *fused, int n, size_t grain);

#endif
