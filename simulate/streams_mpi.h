// streams_mpi.h - moves the messages of a ring, or of pairs, in a simulation.

#pragma once

#include "horovod_ring/streams.h"

extern const struct streams_ops streams_mpi;

// With one message under way at a time, as in a TCP stream. With two under way,
// on a link that other messages use too, the simulator would divide the link
// among all of them, and the second would delay the first.
extern const struct streams_ops streams_mpi_stream;

// The largest message, in bytes, and whether it has payload, of streams whose
// opener does not say it. It holds for all ranks, which are one process.
void streams_mpi_usual(size_t message, bool payload);
