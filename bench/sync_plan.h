// sync_plan.h - what sync_perf is to measure: its rows and its settings.

#ifndef BENCH_SYNC_PLAN_H
#define BENCH_SYNC_PLAN_H

#include "sync/link.h"
#include "sync/sync.h"

enum { PLAN_ROWS = 12, PLAN_SIZES = 64, PLAN_ROUNDS = 101, PLAN_TEXT = 512 };

struct row {
    const char *name;
    const struct sync_ops *ops;
    struct law (*law)(int world); // NULL: by update=, algorithm=
    bool mpi;                     // only under mpirun
    bool peer;                    // not ours: given no settings but its own
    int servers;                  // -1: one beside each worker
    const char *opts;             // always
};

extern const struct row plan_rows[PLAN_ROWS];

struct plan {
    int workers, rounds, threads;
    double min_bytes, max_mb, factor, bucket_mb, timeout_s;
    struct links links;      // link=: the law's; n 0: fit
    const char *out;         // file for the fits; "" for none
    const char *server_host; // emulated host of sps's server; "" for none
    bool all; // without sync=: every row that can be
    bool use[PLAN_ROWS];
    char opts[PLAN_ROWS][PLAN_TEXT];
    size_t counts[PLAN_SIZES]; // of gradients
    int nsizes;
};

// Defaults, then words key=value. 0; 1 after --help was printed; -1 after
// fail(). `launched`: under mpirun.
int plan_parse(struct plan *p, bool launched, int nwords, char **words);

// The number format of a row's wire, and its law: 0, or -1 after fail().
const char *plan_wire(const struct plan *p, int row);
int plan_law(const struct plan *p, int row, int world, struct law *out);

#endif
