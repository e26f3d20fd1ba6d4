// mesh_search.h - finds the fastest ways to use a number of workers.

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
    int n;
    struct mesh_answer best[MESH_BEST]; // the fastest first
    int tried, too_large;               // ways, by mesh, backend and shard=
    struct mesh_answer least; // of those too large, the one that needs least
};

// Tries all combinations of
//     mesh=dpD,ppP,tpT with D P T workers
//     sync=ring, and the backend with shards for each shard= that it supports
//     batch= 1, 2, 4 .. sequences of a micro-batch
//     ahead= 0, and 1 with stages if pipeline= supports it
// A key that the run sets has only that value. Of each mesh, backend and shard=
// it keeps the fastest combination that fits into memory. 0, or -1 after
// fail().
int mesh_search(const struct mesh_question *q, struct mesh_answers *out);

#endif
