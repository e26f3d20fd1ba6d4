// openmpi.h - the peer: MPI's own blocking all-reduce, by a chosen algorithm.
//
// A backend like the others, so that it is measured and checked as they are.
// algorithm= becomes Open MPI's coll_tuned number, while the job runs, through
// MPI's tool interface; auto is its own choice. Other MPIs have only that.

#ifndef BENCH_OPENMPI_H
#define BENCH_OPENMPI_H

#include "sync/sync.h"

extern const struct sync_ops sync_openmpi;

// Its ring in segments of slice_kb.
extern const struct sync_ops sync_openmpi_segments;

// Before MPI starts: let algorithms be chosen, and leave out the thread for TCP
// that core/cluster/mpi.c asks for, with which a blocking call takes up to
// three times as long.
void openmpi_prepare(void);

#endif
