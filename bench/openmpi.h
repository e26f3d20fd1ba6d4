// openmpi.h - MPI's own blocking all-reduce with a chosen algorithm, to compare
// our backends with.
//
// It is a backend like the others, so that it is measured and checked like
// them. algorithm= chooses one of coll_tuned's algorithms, and is set through
// MPI's tool interface while the job runs. With algorithm=auto or library, MPI
// itself chooses. With an MPI other than Open MPI, only these two work. A row
// that reads slice_kb= is Open MPI's segmented ring, with segments of slice_kb.

#pragma once

#include "sync/sync.h"

extern const struct sync_ops sync_openmpi;

// Call this before MPI starts. It allows algorithms to be chosen. It also
// switches off the thread for TCP that core/cluster/mpi.c asks for: with this
// thread a blocking call takes up to three times as long.
void openmpi_prepare(void);
