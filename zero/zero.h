// zero.h - the strategy of ZeRO 1: replicas that share the optimiser's state
// out.

#ifndef ZERO_ZERO_H
#define ZERO_ZERO_H

#include "sync/sync.h"

// Over whichever carrier of host memory the job has.
extern const struct sync_ops sync_zero;

#endif
