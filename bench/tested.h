// tested.h - opens a backend, runs its steps, and checks its results.
//
// Gradients are the small integers of table_number(). They have one sign in odd
// steps and the other in even steps. The update subtracts their sum. So
// parameters are exactly minus the sum after an odd step, and exactly zero
// after an even step, whether servers or workers update. This lets several
// backends alternate on the same vectors, with an even number of steps at a
// time.

#pragma once

#include "optim/optim.h"
#include "sync/sync.h"

enum { TESTED_BUCKETS = 4096 };

struct backend;
struct group_ops;
struct served;

// All backends tested at one size share this.
struct arena {
    struct cluster *cluster;
    struct device *dev;
    float *params, *grads;
    size_t n;
    struct bucket buckets[TESTED_BUCKETS];
    int nbuckets;
    struct optim_config optim;
    int threads;             // of a server
    const char *server_host; // emulated host of a single server; "": worker 0's
};

struct tested {
    struct arena *arena;
    struct served *served; // the server in this worker's process; NULL: none
    struct sync_settings settings;
    struct sync *sync;
    int steps;
    size_t wrong; // number of wrong results on this worker
};

// The cost of all steps, added up.
struct cost {
    double seconds; // from the first ready bucket until the sum is complete, or
                    // the new parameters where a server updates
    double cpu_s;   // processor seconds of this process, with the update
    double bytes_out;
};

// Opens vectors of n elements, in buckets of `bucket` elements. Returns 0, or
// -1 after fail(). Call arena_close() in both cases.
int arena_open(struct arena *a, struct cluster *c, size_t n, size_t bucket,
               int threads, const char *server_host);
void arena_close(struct arena *a);

// Opens a strategy and its carrier (NULL: none), with the settings `asked`.
// Also starts the servers that `row` needs in the processes of the first
// workers. Returns 0, or -1 after fail(). Call tested_close() in both cases.
int tested_open(struct tested *e, struct arena *a, const struct sync_ops *ops,
                const struct group_ops *carrier, const struct backend *row,
                const struct sync_settings *asked);
int tested_close(struct tested *e, bool failed);

// Runs `count` steps, adds their cost to *cost, and the number of wrong results
// to e->wrong. An even count leaves parameters zero, as they were before. The
// last call makes one step, so that the result is not zero. Returns 0, or -1
// after fail().
int tested_run(struct tested *e, int count, struct cost *cost);
