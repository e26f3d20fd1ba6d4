// replicas.h - the strategy of data-parallel replicas: every worker holds all
// parameters, the gradients are all-reduced, every worker updates.

#pragma once

#include "sync/sync.h"

// It works with any carrier: over a library's all-reduce it is DDP, over our
// ring Horovod.
extern const struct sync_ops sync_replicas;
