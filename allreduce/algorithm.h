// algorithm.h - which all-reduce Open MPI uses.
//
// MPI_Iallreduce is not the coll_tuned that mpirun's usual settings choose
// from, but libnbc, which has algorithms of its own. Left alone it takes, for a
// sum in place, a binomial tree: to one rank and back, so each way of its link
// idles half the time. Others, and what crosses the busiest link each way for S
// bytes and n ranks, in so many messages one after the other:
//
//     ring                  2(n-1)/n S       2(n-1)
//     halving (Rabenseifner) 2(n-1)/n S      2 log2 n    n a power of two
//     doubling              log2(n) S        log2 n      n a power of two
//     tree                  2 log2(n) S      2 log2 n    as one link sees it
//
// Elsewhere halving and doubling first fold the ranks beyond a power of two
// into the others, and hand them the sum at the end: 2 S and 2 messages more.

#ifndef ALLREDUCE_ALGORITHM_H
#define ALLREDUCE_ALGORITHM_H

#include "config/settings.h"

// From the next all-reduce of this process on; MPI is up. `auto` is the ring,
// if this MPI can be told; `library` is whatever it takes itself. 0, or -1
// after fail() where another MPI than Open MPI cannot be told.
int algorithm_use(enum algorithm a);

// Set one of Open MPI's integer variables (ompi_info --all) through MPI's tool
// interface. 0, or -1 after fail() where there is none of that name.
int algorithm_variable(const char *name, int value);

#endif
