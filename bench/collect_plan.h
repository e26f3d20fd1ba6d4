// collect_plan.h - what collect_perf is to measure: its verbs, its rows, its
// words.

#ifndef BENCH_COLLECT_PLAN_H
#define BENCH_COLLECT_PLAN_H

#include "bench/series.h"
#include "config/config.h"
#include "group/group.h"
#include "textbook/schedule.h"

enum collect_verb {
    COLLECT_ALL_REDUCE,
    COLLECT_REDUCE_SCATTER,
    COLLECT_ALL_GATHER,
    COLLECT_BROADCAST,
    COLLECT_REDUCE,
    COLLECT_SCATTER,
    COLLECT_GATHER,
    COLLECT_SENDRECV, // each member to the next, round in a ring
    COLLECT_VERBS
};

enum { COLLECT_ROWS = 13, COLLECT_ROUNDS = 101, NO_SCHEDULE = -1 };

// One way of doing a verb.
struct collect_row {
    const char *name;
    const struct group_ops *carrier; // NULL: MPI's own blocking call
    int algorithm; // a textbook's, from sends and receives of the carrier; or
                   // NO_SCHEDULE: the carrier's own verb
    bool mpi;      // only under mpirun
};

extern const struct collect_row collect_rows[COLLECT_ROWS];
extern const char *const collect_verb_names[]; // NULL-terminated

struct collect_plan {
    int workers, rounds, threads, slice_kb, spoil;
    double min_bytes, max_mb, factor, timeout_s;
    char op_text[CONFIG_PATH], rows_text[CONFIG_PATH], iface[CONFIG_PATH];
    bool verbs[COLLECT_VERBS], use[COLLECT_ROWS];
    size_t counts[SERIES_SIZES]; // elements asked for
    int nsizes;
};

// Defaults, then words key=value. 0; 1 after --help was printed; -1 after
// fail(). `launched`: under mpirun.
int collect_parse(struct collect_plan *p, bool launched, int nwords,
                  char **words);

// The textbook's op of a verb, or NO_SCHEDULE; the verb of group.h, or
// GROUP_VERBS where it has none.
int collect_op(enum collect_verb v);
enum group_verb collect_group_verb(enum collect_verb v);

// Whether a row has a verb.
bool collect_has(int row, enum collect_verb v);

// Elements of a verb's vector where n were asked for, and the count of
// nccl-tests: a member's part of a vector that has parts, else all of it.
size_t collect_elements(enum collect_verb v, size_t n, int world);
size_t collect_count(enum collect_verb v, size_t n, int world);

// busbw / algbw, and the formula as text.
double collect_factor(enum collect_verb v, int world);
const char *collect_formula(enum collect_verb v);

#endif
