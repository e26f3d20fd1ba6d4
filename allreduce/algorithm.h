// algorithm.h - which all-reduce Open MPI uses.
//
// MPI_Iallreduce does not use coll_tuned, from which mpirun's usual settings
// choose. It uses libnbc, with algorithms of its own. For a sum in place libnbc
// normally takes a binomial tree: to one rank and back. So each direction of
// that rank's link idles half the time. The table has other algorithms. For S
// bytes and n ranks it has the bytes that cross the busiest link each way, and
// the number of messages one after the other:
//
//     ring                  2(n-1)/n S       2(n-1)
//     halving (Rabenseifner) 2(n-1)/n S      2 log2 n    n a power of two
//     doubling              log2(n) S        log2 n      n a power of two
//     tree                  2 log2(n) S      2 log2 n    as one link sees it
//
// If n is no power of two, halving and doubling first fold the surplus ranks
// into the others, and give them the sum at the end: 2 S and 2 messages more.

#ifndef ALLREDUCE_ALGORITHM_H
#define ALLREDUCE_ALGORITHM_H

#include "config/settings.h"

// Sets the algorithm from the next all-reduce of this process on. MPI must be
// up. `auto` is the ring, if this MPI can be set; `library` is MPI's own
// choice. 0, or -1 after fail() if this is not Open MPI and cannot be set.
int algorithm_use(enum algorithm a);

// Sets one of Open MPI's integer variables (ompi_info --all) through MPI's tool
// interface. 0, or -1 after fail() if there is no variable of that name.
int algorithm_variable(const char *name, int value);

#endif
