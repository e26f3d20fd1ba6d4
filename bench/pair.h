// pair.h - compares two workers that communicate with two that do not.

#pragma once

// Runs pair_perf under mpirun for `rounds` rounds, and prints its rows. Prints
// why if it cannot run.
void pair_print(int rounds);
