// collect_plan.h - the plan of collect_perf: its verbs, rows and settings.

#pragma once

#include "bench/table.h"
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
    COLLECT_ALL_TO_ALL,
    COLLECT_SENDRECV, // each member sends to the next one, in a ring
    COLLECT_VERBS
};

enum { COLLECT_ROWS = 13, COLLECT_ROUNDS = 101, NO_SCHEDULE = -1 };

// A carrier, and the algorithm of its verbs.
struct collect_row {
    const char *name;
    const struct group_ops *carrier; // NULL: MPI's own blocking call. It and
                                     // library_mpi run only under mpirun
    int algorithm; // enum schedule_algorithm, by the carrier's sends and
                   // receives; or NO_SCHEDULE: the carrier's own verb
};

// The formula of busbw. COLLECT_PARTS: every member has a part of the vector.
enum collect_bus {
    COLLECT_WHOLE, // algbw
    COLLECT_PARTS, // algbw (n-1)/n
    COLLECT_TWICE  // algbw 2(n-1)/n
};

// What is known of a verb, besides its name.
struct collect_facts {
    enum group_verb verb; // of group.h; GROUP_VERBS: none
    int op;               // enum schedule_op; or NO_SCHEDULE: none
    enum collect_bus bus;
};

extern const struct collect_row collect_rows[COLLECT_ROWS];
extern const struct collect_facts collect_facts[COLLECT_VERBS];
extern const char *const collect_verb_names[]; // NULL-terminated

struct collect_plan {
    int workers, rounds, threads, slice_kb, spoil;
    double min_bytes, max_mb, factor, timeout_s;
    char op_text[CONFIG_PATH], rows_text[CONFIG_PATH], iface[CONFIG_PATH];
    bool verbs[COLLECT_VERBS], use[COLLECT_ROWS];
    size_t counts[TABLE_SIZES]; // elements of each size
    int nsizes;
};

// Fills *p with defaults, then with `words`, which are key=value. `launched`:
// this process is under mpirun. Returns 0; 1 after it has printed the help; or
// -1 after fail().
int collect_parse(struct collect_plan *p, bool launched, int nwords,
                  char **words);

// Whether a row can do a verb.
bool collect_has(int row, enum collect_verb v);

// The elements of a verb's vector: n, but at least one per member, and rounded
// down to equal parts if every member has a part. And the count of nccl-tests:
// the elements of one part, or of the whole vector if it has no parts.
size_t collect_elements(enum collect_verb v, size_t n, int world);
size_t collect_count(enum collect_verb v, size_t n, int world);

// busbw / algbw for `world` members.
double collect_factor(enum collect_verb v, int world);
