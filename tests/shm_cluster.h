// shm_cluster.h - a cluster of forked test workers over shared memory.

#pragma once

#include "cluster/cluster.h"

struct shm_counters;

// Allocates counters before fork(), to share with the children. Returns NULL
// after fail(). shm_counters_close() sets *b to NULL.
struct shm_counters *shm_counters_open(void);
void shm_counters_close(struct shm_counters **b);

// Opens the cluster on worker `rank`. Returns 0, or -1 after fail(). The caller
// closes it with cluster_close().
int shm_cluster_open(struct cluster **c, struct shm_counters *b, int rank,
                     int world, double timeout_s);
