// mesh_search.h - finds the fastest ways to use a number of workers.

#ifndef LOCKSTEP_MESH_SEARCH_H
#define LOCKSTEP_MESH_SEARCH_H

#include "lockstep/mesh_case.h"

enum { MESH_BEST = 10 };

struct mesh_question {
    struct mesh_job job;
    // The relative errors of the links' figures (sync/link.h).
    double outer_error, inner_error;
    int global_batch; // sequences of a step
    double memory;    // bytes that a worker has; 0: no limit
};

struct mesh_answer {
    struct mesh_case way;
    struct mesh_step step;
    double link_s;          // what messages add to the step
    double least_s, most_s; // step.seconds within the links' errors
};

struct mesh_answers {
    int n;
    struct mesh_answer best[MESH_BEST]; // the fastest first
    int tried, too_large;               // ways, by mesh, backend and shard=
    struct mesh_answer least; // of those too large, the one that needs least
    // The fastest with wire=fp32; plain.step.seconds is 0 if there is none.
    struct mesh_answer plain;
};

// Tries all combinations of
//     mesh=dpD,ppP,tpT with D P T workers
//     sync=ring, and the backend with shards for each shard= that it supports
//     batch= 1, 2, 4 .. sequences of a micro-batch
//     ahead= 0, and 1 with stages if pipeline= supports it
//     wire=  fp32, and with replicas the 16 bits of precision= (bf16 with fp32)
// A key that the run sets has only that value. Of each mesh, backend and shard=
// it keeps the fastest combination that fits into memory. If two ways take the
// same time, to the digits of mesh_seconds(), the first is the one that sends
// fewer bytes, and then the simpler one. 0, or -1 after fail().
int mesh_search(const struct mesh_question *q, struct mesh_answers *out);

// Rounds seconds to the four digits that are printed.
double mesh_seconds(double seconds);

#endif
