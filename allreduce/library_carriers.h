// library_carriers.h - the libraries' carriers of group.h's verbs.

#ifndef ALLREDUCE_LIBRARY_CARRIERS_H
#define ALLREDUCE_LIBRARY_CARRIERS_H

#include "group/group.h"

// Open MPI's non-blocking collectives, on host memory; MPI is up.
extern const struct group_ops library_mpi;

// NCCL's collectives between GPUs; where that was built.
extern const struct group_ops library_nccl;

#endif
