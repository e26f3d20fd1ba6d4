// zero.h - the strategy of ZeRO 1, 2 and 3. Workers divide the optimiser's
// state among them; with ZeRO 2 also the gradients, with ZeRO 3 also the
// parameters.

#pragma once

#include "sync/sync.h"

// It works with any carrier for host memory.
extern const struct sync_ops sync_zero;
