// pair.h - two workers that talk beside two that do not, for one configuration.

#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

// Run pair_perf under mpirun and print its rows; a line where it cannot run.
void pair_print(int rounds);

#endif
