// forked.h - a world of test workers: forked processes that communicate through
// shared memory, or the ranks of a job that mpirun started.

#pragma once

#include "cluster/cluster.h"

#include <stdint.h>

enum { FORKED_MOST = 16, FORKED_LONGEST_S = 120 };

// Runs body() on every worker. If `launched` is NULL, it forks the workers, and
// kills them after FORKED_LONGEST_S. Else `launched` is the cluster of an
// mpirun job of `world` ranks: this process is one of them, and all ranks make
// this call. timeout_s is the timeout of the forked workers' cluster; 0 stands
// for so long that it does not matter. Returns how many workers failed, died or
// did not end in time. results[rank] gets the result that each body() stored;
// results may be NULL. A body that fails prints why.
typedef int world_body(struct cluster *c, const void *arg, uint64_t *result);
int forked_run(struct cluster *launched, int world, double timeout_s,
               world_body *body, const void *arg, uint64_t *results);

// The type of forked_run(), for other functions that run a world.
typedef int world_runner(struct cluster *launched, int world, double timeout_s,
                         world_body *body, const void *arg, uint64_t *results);
