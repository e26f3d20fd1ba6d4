// simulate_op.c - `lockstep simulate op=..` simulates the collectives of
// textbooks: linear, by a tree and in a chain (textbook/schedule.h).
//
// For example, one worker has a file that 7 other workers need, and a copy
// takes 5 s:
//
//     lockstep simulate op=broadcast workers=8 mb=5 link=1MB/s alpha_us=0
//
// The linear broadcast takes 35 s, the tree 15 s. docs/collectives.md has more.

#include "lockstep/simulate_kinds.h"

#include "lockstep/simulation_table.h"

#include "base/base.h"
#include "config/backends.h"

#include <string.h>

enum { MAX_MB = 2000, ALL = 0 };

struct question {
    struct simulation_words words;
    // The values of the command line.
    int op, algorithm; // algorithm: 0 for all
    double mb, slice_kb;
    // Derived from them.
    struct list workers;
    struct simulation sim; // row() sets the workers and the schedule
};

static const char *const algorithms[] = {"all", "linear", "tree", "chain",
                                         NULL};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"op=", "op", "broadcast", KEY_CHOICE, AT(op), .words = schedule_op_names,
     .help = "the collective; its root is worker 0"},
    {"op=", "algorithm", "all", KEY_CHOICE, AT(algorithm), .words = algorithms,
     .help = "scatter and gather have only linear and tree"},
    {"op=", "mb", "5", KEY_NUMBER, AT(mb), .min = 1e-5, .max = MAX_MB,
     .unit = "MB", .help = "size of the whole vector"},
    {"op=", "slice_kb", "256", KEY_NUMBER, AT(slice_kb), .min = 0.004,
     .max = 1e6, .unit = "KiB", .help = "chain: size of a piece"},
    SIMULATION_KEYS("op="),
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep simulate --help"};

static void explain(FILE *f)
{
    fprintf(f, "\nWith op= it simulates a collective, as textbooks teach it "
               "(docs/collectives.md).\n");
    key_help(f, &keys);
    fprintf(f, "  lockstep simulate op=broadcast workers=8 mb=5 link=1MB/s "
               "alpha_us=0\n");
}

// ---- the question

static bool is_asked(const struct question *q, int algorithm)
{
    return schedule_exists((enum schedule_op)q->op,
                           (enum schedule_algorithm)algorithm) &&
           (q->algorithm == ALL || q->algorithm - 1 == algorithm);
}

static int ask(struct question *q, int nwords, char **words)
{
    key_defaults(&keys, q);
    if (key_words(&keys, q, nwords, words))
        return -1;
    q->sim.n = (size_t)(q->mb * 1e6 / sizeof(float));
    q->sim.name = schedule_op_names[q->op];
    q->sim.backend = backend_at(0); // no servers
    if (q->algorithm != ALL && !is_asked(q, q->algorithm - 1))
        return fail("simulate: op=%s has no algorithm=%s; try: "
                    "algorithm=linear or tree",
                    schedule_op_names[q->op], algorithms[q->algorithm]);
    return simulation_read(&q->words, &q->sim, &q->workers);
}

// ---- the answer

static int row(const struct simulation_table *t, const struct question *q,
               int workers, int algorithm)
{
    char names[64];
    struct simulation s = q->sim;
    size_t piece = (size_t)(q->slice_kb * 1024 / sizeof(float));
    struct schedule schedule = {.op = (enum schedule_op)q->op,
                                .algorithm = (enum schedule_algorithm)algorithm,
                                .world = workers,
                                .n = s.n,
                                .piece = piece < s.n ? piece : s.n};
    struct law law = schedule_law(&schedule);
    s.workers = workers;
    s.schedule = &schedule;
    snprintf(names, sizeof names, "%s,%s", s.name,
             schedule_algorithm_names[algorithm]);
    return simulation_table_row(t, &s, names, simulation_law(&s, &law));
}

static int answer(const struct question *q)
{
    struct simulation_table t;
    if (simulation_table_open(&t, &q->sim, "collectives.csv", "op,algorithm"))
        return -1;
    int rc = 0;
    for (int i = 0; !rc && i < q->workers.n; i++)
        for (int a = 0; !rc && a < SCHEDULE_ALGORITHMS; a++)
            if (is_asked(q, a))
                rc = row(&t, q, q->workers.at[i], a);
    return simulation_table_close(&t, rc);
}

static int simulate(int nwords, char **words)
{
    struct question *q = mem_alloc(1, sizeof *q);
    int rc =
        !q || ask(q, nwords, words) || simulation_check() || answer(q) ? -1 : 0;
    mem_free(q);
    return rc;
}

const struct simulate_kind simulate_op = {"op=", explain, simulate};
