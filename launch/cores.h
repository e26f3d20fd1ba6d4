// cores.h - chooses the cores of each worker of this host.

#pragma once

#include <sched.h>
#include <stdbool.h>

// Returns how many cores (hardware threads) this process may use.
int cores_count(void);

// Returns in *out the cores of worker `index` of `count`. They are neighbours
// in the machine's topology, and all workers get the same number. Workers share
// cores only if there are more workers than cores; then *oversubscribed is
// true. 0, or -1 after fail().
int cores_share(int index, int count, cpu_set_t *out, bool *oversubscribed);

// Keeps this process, and what it executes, on these cores. If the system does
// not allow it, a line on standard error says so, and the process may use all
// cores. It may be called between fork() and exec().
void cores_take(const cpu_set_t *cores);

// Sets in the environment how long the threads of OpenMP spin in the programs
// that are started from now on. Does not change what the user has set.
void cores_wait_politely(bool oversubscribed);
