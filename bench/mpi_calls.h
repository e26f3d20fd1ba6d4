// mpi_calls.h - the peers of the verbs: MPI's own blocking calls.

#ifndef BENCH_MPI_CALLS_H
#define BENCH_MPI_CALLS_H

#include "bench/collect_plan.h"

// One call on `own`, n elements of fp32, in place where MPI can; `landing`, as
// many, is what sendrecv receives into, and reduce_scatter. The root is rank 0.
// A call of all ranks; MPI is up. An error of MPI ends the job.
void mpi_call(enum collect_verb verb, float *own, float *landing, size_t n,
              int rank, int world);

#endif
