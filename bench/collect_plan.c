// collect_plan.c - the verbs and rows of collect_perf's tables, and its
// settings.
//
// size, count and busbw are those of nccl-tests (doc/PERFORMANCE.md). size is
// the number of bytes of the whole vector. count is the number of elements of
// the whole vector, or of one part if every member has a part. busbw is algbw
// times the share of the vector that must cross each link.

#include "bench/collect_plan.h"

#include "allreduce/library_carriers.h"
#include "bench/workers.h"
#include "horovod_ring/carriers.h"

#include "base/base.h"
#include "config/keys.h"

#include <string.h>

const char *const collect_verb_names[] = {"all_reduce", "reduce_scatter",
                                          "all_gather", "broadcast",
                                          "reduce",     "scatter",
                                          "gather",     "all_to_all",
                                          "sendrecv",   NULL};

const struct collect_row collect_rows[COLLECT_ROWS] = {
    {"ring-tcp", &ring_tcp, NO_SCHEDULE},
    {"ring-shm", &ring_shm, NO_SCHEDULE},
    {"library", &library_mpi, NO_SCHEDULE},
    {"openmpi", NULL, NO_SCHEDULE},
    {"linear-tcp", &ring_tcp, SCHEDULE_LINEAR},
    {"tree-tcp", &ring_tcp, SCHEDULE_TREE},
    {"chain-tcp", &ring_tcp, SCHEDULE_CHAIN},
    {"linear-shm", &ring_shm, SCHEDULE_LINEAR},
    {"tree-shm", &ring_shm, SCHEDULE_TREE},
    {"chain-shm", &ring_shm, SCHEDULE_CHAIN},
    {"linear-mpi", &library_mpi, SCHEDULE_LINEAR},
    {"tree-mpi", &library_mpi, SCHEDULE_TREE},
    {"chain-mpi", &library_mpi, SCHEDULE_CHAIN},
};

const struct collect_facts collect_facts[COLLECT_VERBS] = {
    [COLLECT_ALL_REDUCE] = {GROUP_ALL_REDUCE, NO_SCHEDULE, COLLECT_TWICE},
    [COLLECT_REDUCE_SCATTER] = {GROUP_REDUCE_SCATTER, NO_SCHEDULE,
                                COLLECT_PARTS},
    [COLLECT_ALL_GATHER] = {GROUP_ALL_GATHER, NO_SCHEDULE, COLLECT_PARTS},
    [COLLECT_BROADCAST] = {GROUP_BROADCAST, SCHEDULE_BROADCAST, COLLECT_WHOLE},
    [COLLECT_REDUCE] = {GROUP_REDUCE, SCHEDULE_REDUCE, COLLECT_WHOLE},
    [COLLECT_SCATTER] = {GROUP_VERBS, SCHEDULE_SCATTER, COLLECT_PARTS},
    [COLLECT_GATHER] = {GROUP_VERBS, SCHEDULE_GATHER, COLLECT_PARTS},
    [COLLECT_ALL_TO_ALL] = {GROUP_ALL_TO_ALL, NO_SCHEDULE, COLLECT_PARTS},
    [COLLECT_SENDRECV] = {GROUP_SEND, NO_SCHEDULE, COLLECT_WHOLE},
};

bool collect_has(int row, enum collect_verb v)
{
    const struct collect_row *r = &collect_rows[row];
    if (r->algorithm != NO_SCHEDULE)
        return collect_facts[v].op != NO_SCHEDULE &&
               schedule_exists((enum schedule_op)collect_facts[v].op,
                               (enum schedule_algorithm)r->algorithm);
    return !r->carrier || collect_facts[v].verb != GROUP_VERBS;
}

size_t collect_elements(enum collect_verb v, size_t n, int world)
{
    size_t w = (size_t)world;
    n = n < w ? w : n;
    return collect_facts[v].bus == COLLECT_PARTS ? n / w * w : n;
}

size_t collect_count(enum collect_verb v, size_t n, int world)
{
    return collect_facts[v].bus == COLLECT_PARTS ? n / (size_t)world : n;
}

double collect_factor(enum collect_verb v, int world)
{
    double times = collect_facts[v].bus;
    return times > 0 ? times * (world - 1) / world : 1;
}

// ---- the command line

#define AT(member) offsetof(struct collect_plan, member), false

static const struct key rows[] = {
    {"bench collect", "op", "all", KEY_TEXT, AT(op_text), .unit = "VERB,..",
     .help = "verbs to measure"},
    {"bench collect", "rows", "all", KEY_TEXT, AT(rows_text), .unit = "ROW,..",
     .help = "rows of each verb's table"},
    {"bench collect", "workers", "2", KEY_INT, AT(workers), .min = 2,
     .max = WORKERS_MOST,
     .help = "worker processes; not under mpirun, where -n counts"},
    {"bench collect", "rounds", "5", KEY_INT, AT(rounds), .min = 1,
     .max = COLLECT_ROUNDS, .help = "in each round all rows take turns"},
    {"bench collect", "threads", "1", KEY_INT, AT(threads), .min = 1,
     .max = 1024, .help = "threads of a worker"},
    {"bench collect", "min_bytes", "64", KEY_NUMBER, AT(min_bytes), .min = 4,
     .max = 4e9, .unit = "B", .help = "size of the smallest vector"},
    {"bench collect", "max_mb", "64", KEY_NUMBER, AT(max_mb), .min = 4e-6,
     .max = 4096, .unit = "MiB", .help = "size of the largest vector"},
    {"bench collect", "factor", "16", KEY_NUMBER, AT(factor), .min = 1.1,
     .max = 1e6, .help = "each size is this many times the last"},
    {"bench collect", "slice_kb", "256", KEY_INT, AT(slice_kb), .min = 1,
     .max = 65536, .unit = "KiB", .help = "size of a piece in ring and chain"},
    {"bench collect", "iface", "", KEY_TEXT, AT(iface), .unit = "NAME|SUBNET",
     .help = "network of the ring; default: loopback"},
    {"bench collect", "timeout", "60", KEY_NUMBER, AT(timeout_s), .min = 0.05,
     .max = 86400, .unit = "s", .help = "longest wait for another process"},
    {"bench collect", "spoil", "0", KEY_INT, AT(spoil), .min = 0, .max = 1,
     .help =
         "1: worker 0 spoils a number of every result; #wrong must count it"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep bench collect --help"};

static void print_names(const char *key, const char *const *names, int n)
{
    printf("\n%s=", key);
    for (int i = 0; i < n; i++)
        printf("%s%s", i ? "," : "", names[i]);
}

static void row_names(const char *names[COLLECT_ROWS])
{
    for (int i = 0; i < COLLECT_ROWS; i++)
        names[i] = collect_rows[i].name;
}

static void print_help(void)
{
    const char *names[COLLECT_ROWS];
    row_names(names);
    printf(
        "lockstep bench collect [key=value] ...\n\nTimes of each collective "
        "operation, by carrier and size, compared with\nOpen MPI's own calls "
        "(docs/collectives.md).\n");
    key_help(stdout, &keys);
    print_names("op", collect_verb_names, COLLECT_VERBS);
    print_names("rows", names, COLLECT_ROWS);
    printf(
        "\n\n  lockstep bench collect workers=4      all rows, under mpirun\n"
        "  lockstep bench collect op=broadcast   one of the tables\n");
}

// Without mpirun, rows of MPI are an error if rows= names them. With rows=all
// they are left out.
static int choose_mpi(struct collect_plan *p, bool launched)
{
    bool all = !strcmp(p->rows_text, "all");
    for (int i = 0; i < COLLECT_ROWS && !launched; i++) {
        const struct group_ops *carrier = collect_rows[i].carrier;
        if (!p->use[i] || (carrier && carrier != &library_mpi))
            continue;
        if (!all)
            return fail("rows=%s: %s requires MPI; try: lockstep bench collect "
                        "rows=%s",
                        p->rows_text, collect_rows[i].name, p->rows_text);
        p->use[i] = false;
    }
    return 0;
}

// Every verb that op= names needs a row that can do it.
static int check_rows(const struct collect_plan *p)
{
    for (int v = 0; strcmp(p->op_text, "all") && v < COLLECT_VERBS; v++) {
        bool some = !p->verbs[v];
        for (int i = 0; i < COLLECT_ROWS; i++)
            some |= p->use[i] && collect_has(i, (enum collect_verb)v);
        if (!some)
            return fail("rows=%s: none of these rows has %s; try: rows=all",
                        p->rows_text, collect_verb_names[v]);
    }
    return 0;
}

int collect_parse(struct collect_plan *p, bool launched, int nwords,
                  char **words)
{
    const char *names[COLLECT_ROWS];
    row_names(names);
    key_defaults(&keys, p);
    for (int i = 0; i < nwords; i++)
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h")) {
            print_help();
            return 1;
        }
    if (key_words(&keys, p, nwords, words) ||
        table_choose("bench collect", "op", p->op_text, collect_verb_names,
                     COLLECT_VERBS, p->verbs) ||
        table_choose("bench collect", "rows", p->rows_text, names, COLLECT_ROWS,
                     p->use) ||
        choose_mpi(p, launched) || check_rows(p))
        return -1;
    p->nsizes = table_sizes(p->min_bytes, p->max_mb, p->factor, p->counts);
    return 0;
}
