// allreduce.h - the library's all-reduce, a bucket at a time: what DDP does.

#ifndef ALLREDUCE_ALLREDUCE_H
#define ALLREDUCE_ALLREDUCE_H

#include "sync/sync.h"

extern const struct sync_ops sync_allreduce;

// The same by NCCL, between GPUs; where that was built.
extern const struct sync_ops sync_allreduce_nccl;

#endif
