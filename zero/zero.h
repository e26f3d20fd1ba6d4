// zero.h - the strategy of ZeRO 1, 2 and 3: workers that share out the
// optimiser's state, then gradients, then parameters.

#ifndef ZERO_ZERO_H
#define ZERO_ZERO_H

#include "sync/sync.h"

// Over whichever carrier of host memory the job has.
extern const struct sync_ops sync_zero;

#endif
