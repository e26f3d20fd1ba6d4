// mpi_calls.h - MPI's own blocking calls, to compare our verbs with.

#pragma once

#include "bench/collect_plan.h"

// Calls MPI's function for this verb on `own`, n elements of fp32, in place
// where MPI can. sendrecv, all_to_all and reduce_scatter receive into
// `received`, also n elements. The root is rank 0. All ranks call it, after
// MPI_Init(). An MPI error ends the job.
void mpi_call(enum collect_verb verb, float *own, float *received, size_t n,
              int rank, int world);
