// transport_mpi.h - the ring's transport in a simulation.

#ifndef SIMULATE_TRANSPORT_MPI_H
#define SIMULATE_TRANSPORT_MPI_H

#include "horovod_ring/transport.h"

extern const struct transport_ops transport_mpi;

// With one message under way at a time, as in a stream of TCP: where others use
// the link, too, the simulator would let two share it, and the second hold up
// the first.
extern const struct transport_ops transport_mpi_stream;

#endif
