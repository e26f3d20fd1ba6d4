// transport_mpi.h - the ring's transport in a simulation.

#ifndef SIMULATE_TRANSPORT_MPI_H
#define SIMULATE_TRANSPORT_MPI_H

#include "horovod_ring/transport.h"

// Settings: message= (bytes, of the largest), payload=0|1.
extern const struct transport_ops transport_mpi;

#endif
