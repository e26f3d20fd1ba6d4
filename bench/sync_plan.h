// sync_plan.h - what sync_perf is to measure: its rows and its settings.

#ifndef BENCH_SYNC_PLAN_H
#define BENCH_SYNC_PLAN_H

#include "bench/series.h"
#include "config/backends.h"
#include "config/config.h"
#include "sync/link.h"
#include "sync/sync.h"

enum { PLAN_ROWS = 40, PLAN_ROUNDS = 101 };

struct row {
    char name[32]; // of the backend, with "-CARRIER" behind it but for its last
    const struct backend *backend; // of the table, or a peer's own
    bool peer;                     // given no settings but its own
    const struct sync_ops *ops;
    const struct group_ops *carrier; // NULL: it needs none
    bool mpi;                        // only under mpirun
    enum algorithm algorithm;        // settings that it always has, or 0
    int slice_kb;
};

struct sync_plan {
    int workers, rounds, threads;
    double min_bytes, max_mb, factor, bucket_mb, timeout_s;
    char sync_text[CONFIG_PATH], link_text[CONFIG_PATH]; // as they were asked
    struct links links;            // link=: the law's; n 0: fit
    char out[CONFIG_PATH];         // file for the fits; "" for none
    char server_host[CONFIG_PATH]; // emulated host of a single server; "": none
    struct row rows[PLAN_ROWS];
    int nrows;
    bool all; // without sync=: every row that can be
    bool use[PLAN_ROWS];
    struct sync_settings asked[PLAN_ROWS];
    const char *unread[PLAN_ROWS]; // a word for a row that does not read it:
                                   // of all rows it is left out
    size_t counts[SERIES_SIZES];   // of gradients
    int nsizes;
};

// Defaults, then words key=value. 0; 1 after --help was printed; -1 after
// fail(). `launched`: under mpirun.
int plan_parse(struct sync_plan *p, bool launched, int nwords, char **words);

// The law of a row.
struct law plan_law(const struct sync_plan *p, int row, int world);

#endif
