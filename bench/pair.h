// pair.h - compares two workers that communicate with two that do not.

#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

// Runs pair_perf under mpirun for `rounds` rounds, and prints its rows. Prints
// why if it cannot run.
void pair_print(int rounds);

#endif
