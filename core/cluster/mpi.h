// mpi.h - the cluster under mpirun or srun.

#ifndef CLUSTER_MPI_H
#define CLUSTER_MPI_H

#include "cluster/cluster.h"
#include "message/mpi_call.h"

extern const struct cluster_ops cluster_mpi;

#endif
