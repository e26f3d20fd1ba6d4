// fusion.h - joins buckets that are next to each other, up to a size.
//
// Horovod copies small tensors into one buffer, because every message costs
// 2(world-1) latencies, whatever its size. Our gradients are in one vector
// already, so joining neighbours costs nothing but the wait for the last of
// them. Buckets are joined once, in the same way on every worker, so the
// workers need not negotiate.

#pragma once

#include "sync/sync.h"

// Join the n buckets into fused buckets of at most `mb` MiB of fp32; 0: each
// bucket stays alone. The caller frees *fused with mem_free(). Returns the
// number of fused buckets, or -1 after fail().
int fusion_cut(struct bucket **fused, const struct bucket *buckets, int n,
               double mb);

// Move the borders between n fused buckets up to multiples of `grain` elements
// (at least 1), and leave out fused buckets that are empty after that. A fused
// bucket is still complete when its last bucket is. Returns how many are left.
int fusion_align(struct bucket *fused, int n, size_t grain);
