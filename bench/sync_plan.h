// sync_plan.h - what sync_perf is to measure: its rows and its settings.

#ifndef BENCH_SYNC_PLAN_H
#define BENCH_SYNC_PLAN_H

#include "config/backends.h"
#include "sync/link.h"
#include "sync/sync.h"

enum { PLAN_ROWS = 13, PLAN_SIZES = 64, PLAN_ROUNDS = 101 };

struct row {
    const char *name;
    const char *of; // the backend, where the name is not its own
    const struct sync_ops *ops;
    const struct group_ops *carrier; // NULL: it needs none
    struct law (*law)(int world);    // NULL: by update=, algorithm=
    bool mpi;                        // only under mpirun
    int servers;                     // -1: one beside each worker
    const char *key, *value;         // a setting it always has; NULL for none
    const struct backend *peer_row;  // a peer's; ours are in backends.c
};

extern const struct row plan_rows[PLAN_ROWS];

struct sync_plan {
    int workers, rounds, threads;
    double min_bytes, max_mb, factor, bucket_mb, timeout_s;
    struct links links;      // link=: the law's; n 0: fit
    const char *out;         // file for the fits; "" for none
    const char *server_host; // emulated host of sps's server; "" for none
    bool all;                // without sync=: every row that can be
    bool use[PLAN_ROWS];
    struct sync_settings asked[PLAN_ROWS];
    const char *unread[PLAN_ROWS]; // a word for a row that does not read it
    size_t counts[PLAN_SIZES];     // of gradients
    int nsizes;
};

// Defaults, then words key=value. 0; 1 after --help was printed; -1 after
// fail(). `launched`: under mpirun.
int plan_parse(struct sync_plan *p, bool launched, int nwords, char **words);

// Whether a row is not ours: it is given no settings but its own.
bool plan_peer(int row);

// A row of the table of backends, or of the peers.
const struct backend *plan_backend(int row);

// The law of a row.
struct law plan_law(const struct sync_plan *p, int row, int world);

#endif
