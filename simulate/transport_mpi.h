// transport_mpi.h - the ring's transport in a simulation.

#ifndef SIMULATE_TRANSPORT_MPI_H
#define SIMULATE_TRANSPORT_MPI_H

#include "horovod_ring/transport.h"

extern const struct transport_ops transport_mpi;

#endif
