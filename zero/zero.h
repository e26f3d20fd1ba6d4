// zero.h - the strategy of ZeRO 1, 2 and 3: workers divide among them the
// optimiser's state, then also gradients, then also parameters.

#ifndef ZERO_ZERO_H
#define ZERO_ZERO_H

#include "sync/sync.h"

// It works with any carrier for host memory.
extern const struct sync_ops sync_zero;

#endif
