// sync_plan.h - the plan of sync_perf: its rows and settings.

#pragma once

#include "bench/table.h"
#include "config/backends.h"
#include "config/config.h"
#include "sync/link.h"
#include "sync/sync.h"

enum { PLAN_ROWS = 40, PLAN_ROUNDS = 101 };

struct row {
    char name[32]; // of the backend, and "-CARRIER" except for its last carrier
    const struct backend *backend; // of the table, or a peer's own
    const struct sync_ops *ops;
    bool peer;                       // gets only the settings of its row
    const struct group_ops *carrier; // NULL: it needs none
    bool mpi;                        // only under mpirun
    enum algorithm algorithm;        // a fixed setting of this row, or 0
    int slice_kb;                    // a fixed setting of this row, or 0
};

struct sync_plan {
    int workers, rounds, threads;
    double min_bytes, max_mb, factor, bucket_mb, timeout_s;
    char sync_text[CONFIG_PATH], link_text[CONFIG_PATH]; // sync=, link=
    struct links links;            // of link=, for the law; if empty, fit one
    char out[CONFIG_PATH];         // file for the fits; "" for none
    char server_host[CONFIG_PATH]; // emulated host of a single server; "": none
    struct row rows[PLAN_ROWS];
    int nrows;
    bool all; // without sync=: every row that can run
    bool use[PLAN_ROWS];
    struct sync_settings asked[PLAN_ROWS];
    const char *unread[PLAN_ROWS]; // an argument that this row does not read;
                                   // if `all`, such a row is left out
    size_t counts[TABLE_SIZES];    // of gradients
    int nsizes;
};

// Sets the defaults, then the arguments key=value. `launched`: mpirun started
// this process. Returns 0; 1 after --help was printed; -1 after fail().
int plan_parse(struct sync_plan *p, bool launched, int nwords, char **words);

// The law of a row for `world` workers.
struct law plan_law(const struct sync_plan *p, int row, int world);
