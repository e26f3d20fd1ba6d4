// mpi.h - the cluster under mpirun or srun, and what every user of MPI needs.

#ifndef CLUSTER_MPI_H
#define CLUSTER_MPI_H

#include "cluster/cluster.h"

#include <mpi.h>

extern const struct cluster_ops cluster_mpi;

// MPI(MPI_Isend(...)): stop every rank, with file and line, if it fails.
#define MPI(call) mpi_check((call), __FILE__, __LINE__, #call)
void mpi_check(int code, const char *file, int line, const char *call);

// Between two tests of what is not complete: give the core away, sleeping
// longer (to 200 us) the longer nothing has come. `since` as of now_ns().
void mpi_nap(uint64_t since);

#endif
