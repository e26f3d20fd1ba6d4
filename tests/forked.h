// forked.h - a world of test workers: forked processes that meet through a
// piece of shared memory, or the ranks of a job that mpirun started.

#ifndef TESTS_FORKED_H
#define TESTS_FORKED_H

#include "cluster/cluster.h"

#include <stdint.h>

enum { FORKED_MOST = 16, FORKED_LONGEST_S = 120 };

// Run body() on every worker. With `launched` (the cluster of an mpirun job of
// `world` ranks, all of which make this call) this process is one of them; else
// workers are forked, and killed after FORKED_LONGEST_S. timeout_s is that of
// the forked workers' cluster; 0: long enough never to matter. Returns how many
// failed, did not end in time or died; results[rank] (may be NULL) is what each
// body() stored. A body that fails prints why itself.
typedef int world_body(struct cluster *c, const void *arg, uint64_t *result);
int forked_run(struct cluster *launched, int world, double timeout_s,
               world_body *body, const void *arg, uint64_t *results);

// The type of forked_run(), for other functions that run a world.
typedef int world_runner(struct cluster *launched, int world, double timeout_s,
                         world_body *body, const void *arg, uint64_t *results);

#endif
