// transport_mpi.h - the ring's transport in a simulation.

#ifndef SIMULATE_TRANSPORT_MPI_H
#define SIMULATE_TRANSPORT_MPI_H

#include "horovod_ring/transport.h"

extern const struct transport_ops transport_mpi;

// With one message under way at a time, as in a TCP stream. If other messages
// use the link, too, the simulator would let two messages of this transport
// share it, and the second would delay the first.
extern const struct transport_ops transport_mpi_stream;

#endif
