// tested.h - one backend under test: opened, stepped, its results checked.
//
// Gradients are small integers that differ by rank and element, of one sign in
// odd steps and of the other in even ones, and the update subtracts their sum:
// whoever updates, parameters are minus the sum after an odd step and zero
// again after an even one, exactly. So tested can take turns on the same
// vectors, an even number of steps at a time.

#ifndef BENCH_TESTED_H
#define BENCH_TESTED_H

#include "optim/optim.h"
#include "sync/sync.h"

enum { ENTRANT_BUCKETS = 4096 };

struct backend;
struct group_ops;
struct servers;

// What all tested at one size share.
struct arena {
    struct cluster *cluster;
    struct device *dev;
    float *params, *grads;
    size_t n;
    struct bucket buckets[ENTRANT_BUCKETS];
    int nbuckets;
    struct optim_config optim;
    int threads; // of a server
    const char
        *server_host; // emulated, of a single server; "": beside worker 0
};

struct tested {
    struct arena *arena;
    struct servers *servers; // those of this worker
    struct sync_settings settings;
    struct sync *sync;
    int steps;
    size_t wrong; // results on this worker
};

// What steps cost, added up.
struct cost {
    double seconds; // from the first bucket to the sum, or the new parameters
    double cpu_s;   // of this process, the update included
    double bytes_out;
};

// Vectors of n elements, in buckets of `bucket`. 0, or -1 after fail();
// arena_close() follows either way.
int arena_open(struct arena *a, struct cluster *c, size_t n, size_t bucket,
               int threads, const char *server_host);
void arena_close(struct arena *a);

// A strategy and its carrier (NULL: none), with what was asked of it, and
// servers beside the first workers, as many as its row says. 0, or -1 after
// fail(); tested_close() follows either way.
int tested_open(struct tested *e, struct arena *a, const struct sync_ops *ops,
                const struct group_ops *carrier, const struct backend *row,
                const struct sync_settings *asked);
int tested_close(struct tested *e, bool failed);

// `count` steps, even, from parameters of zero to parameters of zero.
int tested_run(struct tested *e, int count, struct cost *cost);

// One more step, with a result other than zero; the last call. Both count in
// e->wrong what is not as it should be.
int tested_check(struct tested *e);

#endif
