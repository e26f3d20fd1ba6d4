// library_carriers.h - carriers that do the verbs of group.h with a library:
// Open MPI or NCCL.

#pragma once

#include "group/group.h"

// Open MPI's non-blocking collectives, on host memory. MPI must be initialised.
extern const struct group_ops library_mpi;

// NCCL's collectives between GPUs. It exists only in builds with NCCL.
extern const struct group_ops library_nccl;
