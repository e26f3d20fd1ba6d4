// transport_mpi.h - moves the messages of a ring in a simulation.

#ifndef SIMULATE_TRANSPORT_MPI_H
#define SIMULATE_TRANSPORT_MPI_H

#include "horovod_ring/transport.h"

extern const struct transport_ops transport_mpi;

// With one message under way at a time, as in a TCP stream. With two under way,
// on a link that other messages use too, the simulator would divide the link
// among all of them, and the second would delay the first.
extern const struct transport_ops transport_mpi_stream;

#endif
