// dataparallel.h - the strategy of torch.nn.DataParallel: worker 0 owns the
// parameters, sends out the batches, and is the only one to update.

#pragma once

#include "sync/sync.h"

// Its carriers are those of our ring for host memory, which have send and recv.
extern const struct sync_ops sync_dataparallel;
