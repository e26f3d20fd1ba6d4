// mesh_search.h - all ways to use so many workers, the fastest first.

#ifndef LOCKSTEP_MESH_SEARCH_H
#define LOCKSTEP_MESH_SEARCH_H

#include "lockstep/mesh_case.h"

enum { MESH_BEST = 10 };

struct mesh_question {
    struct mesh_job job;
    int global_batch; // sequences of a step
    double memory;    // bytes that a worker has; 0: no limit
};

struct mesh_answer {
    struct mesh_case way;
    struct mesh_step step;
};

struct mesh_answers {
    int n; // the fastest
    struct mesh_answer best[MESH_BEST];
    int tried, too_large;     // meshes, each with its fastest micro-batch
    struct mesh_answer least; // of those too large the one that needs least
};

// Every mesh=dpD,ppP,tpT with D P T workers, or the run's own; over ring and,
// for each shard= that the mesh can have, the backend with shards, or the run's
// own sync=; micro-batches of 1, 2, 4 .. sequences, or the run's own batch=;
// with stages also ahead=1, where the run's pipeline= has that. Of each mesh
// and backend the fastest is kept that fits. 0, or -1 after fail().
int mesh_search(const struct mesh_question *q, struct mesh_answers *out);

#endif
