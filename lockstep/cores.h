// cores.h - which cores each worker of this host gets.

#ifndef LOCKSTEP_CORES_H
#define LOCKSTEP_CORES_H

#include <sched.h>
#include <stdbool.h>

// Cores (hardware threads) that this process may use.
int cores_count(void);

// The share of worker `index` of `count`: neighbours in the machine's
// topology, as many for each, disjoint unless count exceeds the cores; then
// *oversubscribed is true and workers take turns. 0, or -1 after fail().
int cores_share(int index, int count, cpu_set_t *out, bool *oversubscribed);

#endif
