// openmpi.h - the peer: MPI's own blocking all-reduce, by a chosen algorithm.
//
// A backend like the others, so that it is measured and checked as they are.
// Settings: algorithm= and segment_kb= are Open MPI's coll_tuned numbers, 0 for
// its own choice; set while the job runs, through MPI's tool interface. Other
// MPIs have no such numbers and only their own choice.

#ifndef BENCH_OPENMPI_H
#define BENCH_OPENMPI_H

#include "sync/sync.h"

extern const struct sync_ops sync_openmpi;

// Before MPI starts: let algorithms be chosen, and leave out the thread for TCP
// that core/cluster/mpi.c asks for, with which a blocking call takes up to three
// times as long.
void openmpi_prepare(void);

#endif
