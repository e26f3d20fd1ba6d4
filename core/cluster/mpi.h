// mpi.h - the cluster under mpirun or srun.

#pragma once

#include "cluster/cluster.h"
#include "message/mpi_call.h"

extern const struct cluster_ops cluster_mpi;
