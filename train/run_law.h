// run_law.h - the bytes and the times that the laws predict for a run.

#pragma once

#include "group/group.h"

#include <stdbool.h>

struct model_config;
struct run;

// The verbs of a group, and one more for gradients pushed to servers.
enum { RUN_LAW_PUSH = GROUP_VERBS, RUN_LAW_VERBS };

// Bytes are payload of a step, and NAN where there is no law.
struct run_law {
    double bytes; // of gradients that leave a worker's host, mean of workers
    double by_verb[RUN_LAW_VERBS];
    double exchange_s; // seconds of an exchange on the links of net=
    double bubble;     // share of a step in which a stage waits
    // Between stages, slices, workers that divide sequences: mean of workers.
    double stages, slices, pieces;
};

// *r: all its settings, after defaults and derivation. `whole` is the model,
// with a vocabulary of 0 if that is not known. `transport` is the one in use,
// or NULL if it is not known; `joins` is that between slices.
void run_law(const struct run *r, const struct model_config *whole, int world,
             const char *transport, const char *joins, struct run_law *out);

// Whether each worker has a server on its own host, and how many servers are
// processes of the run.
bool run_law_beside(const struct run *r, int world);
int run_law_servers(const struct run *r);
