// dataparallel.h - the strategy of torch.nn.DataParallel: worker 0 owns the
// parameters, hands out batches, and updates alone.

#ifndef DATAPARALLEL_DATAPARALLEL_H
#define DATAPARALLEL_DATAPARALLEL_H

#include "sync/sync.h"

// Over our ring's carriers of host memory, which have send and recv.
extern const struct sync_ops sync_dataparallel;

#endif
