// shm_cluster.h - a cluster of forked test workers over shared memory.

#ifndef TESTS_SHM_CLUSTER_H
#define TESTS_SHM_CLUSTER_H

#include "cluster/cluster.h"

struct shm_board;

// Made before fork(), shared with the children; NULL after fail().
struct shm_board *shm_board_open(void);
void shm_board_close(struct shm_board **b);

// A worker's view. 0, or -1 after fail(); close with cluster_close().
int shm_cluster_open(struct cluster **c, struct shm_board *b, int rank,
                     int world, double timeout_s);

#endif
