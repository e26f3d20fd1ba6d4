// algorithm.h - which all-reduce Open MPI uses.
//
// mpirun's usual settings choose an algorithm of Open MPI's part coll_tuned.
// MPI_Iallreduce does not use that part, but libnbc, which has algorithms of
// its own. For a sum in place libnbc normally takes a binomial tree: up to one
// rank and down again. So each direction of that rank's link is idle half the
// time. The table compares the algorithms for S bytes and n ranks: the bytes
// that cross the busiest link in each direction, and how many messages follow
// each other:
//
//     ring                  2(n-1)/n S       2(n-1)
//     halving (Rabenseifner) 2(n-1)/n S      2 log2 n    n a power of two
//     doubling              log2(n) S        log2 n      n a power of two
//     tree                  log2(n) S        2 log2 n    first in, then out
//
// If n is no power of two, halving and doubling first fold the surplus ranks
// into the others, and send them the sum at the end: 2 S and 2 messages more.
// Source: Thakur, Rabenseifner and Gropp, "Optimization of Collective
// Communication Operations in MPICH", 2005.

#pragma once

#include "config/settings.h"

// Sets the algorithm of this process's next all-reduces. MPI must be
// initialised. ALGORITHM_LIBRARY is Open MPI's own choice. ALGORITHM_AUTO is
// the ring; if this MPI has no such setting, it is Open MPI's own choice. Any
// other algorithm then makes the call return -1 after fail(). Else it returns
// 0.
int algorithm_use(enum algorithm a);

// Sets one of Open MPI's integer variables (ompi_info --all) through MPI's tool
// interface. Returns 0, or -1 after fail() if there is no such variable.
int algorithm_variable(const char *name, int value);
