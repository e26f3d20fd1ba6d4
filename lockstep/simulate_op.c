// simulate_op.c - `lockstep simulate op=..`: the textbooks' collectives in
// simulated time, linear, by a tree and in a chain (textbook/schedule.h).
//
// "One has a file, 7 friends want it", at 5 s a copy, is
//
//     lockstep simulate op=broadcast workers=8 mb=5 link=1MB/s alpha_us=0
//
// 35 s one by one and 15 s by halves. docs/collectives.md has more.

#include "lockstep/simulate_op.h"

#include "lockstep/list.h"
#include "lockstep/simulation.h"

#include "base/base.h"
#include "base/file.h"
#include "config/backends.h"
#include "config/keys.h"
#include "sync/link.h"

#include <errno.h>
#include <string.h>

enum { MAX_MB = 2000, ALL = 0 };

struct question {
    int op, algorithm; // of the words; algorithm: 0 for all
    int network, payload;
    double mb, alpha_us, slice_kb, timeout_s;
    char workers_text[CONFIG_PATH], link_text[CONFIG_PATH], out[CONFIG_PATH];
    // What follows from them:
    struct list workers;
    struct link link;
    size_t n; // elements
};

static const char *const algorithms[] = {"all", "linear", "tree", "chain",
                                         NULL};
static const char *const networks[] = {"ideal", "smpi", NULL};

#define AT(member) offsetof(struct question, member), false

static const struct key rows[] = {
    {"op=", "op", "broadcast", KEY_CHOICE, AT(op), .words = schedule_op_names,
     .help = "what is simulated; the root is worker 0"},
    {"op=", "algorithm", "all", KEY_CHOICE, AT(algorithm), .words = algorithms,
     .help = "scatter, gather: linear and tree alone"},
    {"op=", "workers", "2,4,8,16", KEY_TEXT, AT(workers_text), .unit = "N,N..",
     .help = "how many, the root among them"},
    {"op=", "mb", "5", KEY_NUMBER, AT(mb), .min = 1e-5, .max = MAX_MB,
     .unit = "MB", .help = "of the whole vector"},
    {"op=", "link", "25gbit", KEY_TEXT, AT(link_text), .unit = "RATE|FILE",
     .help = "of every worker, both ways at once; 1MB/s: of payload"},
    {"op=", "alpha_us", "25", KEY_NUMBER, AT(alpha_us), .min = 0, .max = 1e6,
     .unit = "us", .help = "latency of a message, with link=RATE"},
    {"op=", "slice_kb", "256", KEY_NUMBER, AT(slice_kb), .min = 0.004,
     .max = 1e6, .unit = "KiB", .help = "chain: a piece"},
    {"op=", "network", "ideal", KEY_CHOICE, AT(network), .words = networks,
     .help = "links as the law has them, or SimGrid's default"},
    {"op=", "payload", "0", KEY_INT, AT(payload), .min = 0, .max = 1,
     .help = "real numbers travel and are looked at"},
    {"op=", "timeout", "600", KEY_NUMBER, AT(timeout_s), .min = 1, .max = 1e6,
     .unit = "s", .help = "of each simulation"},
    {"op=", "out", "runs/simulate", KEY_TEXT, AT(out), .unit = "FOLDER",
     .help = "for collectives.csv"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep simulate --help"};

void simulate_op_explain(FILE *f)
{
    fprintf(f, "\nWith op= a collective instead, as textbooks teach it: "
               "docs/collectives.md.\n");
    key_help(f, &keys);
    fprintf(f, "  lockstep simulate op=broadcast workers=8 mb=5 link=1MB/s "
               "alpha_us=0\n");
}

bool simulate_op_is_asked(int nwords, char **words)
{
    for (int i = 0; i < nwords; i++)
        if (!strncmp(words[i], "op=", 3))
            return true;
    return false;
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
    static struct links links;
    const struct link_fit *fit;
    key_defaults(&keys, q);
    if (key_words(&keys, q, nwords, words) ||
        list_workers(&q->workers, q->workers_text) ||
        links_read(&links, q->link_text, q->alpha_us * 1e-6) ||
        !(fit = links_find(&links, "tcp")))
        return -1;
    q->link = fit->link;
    q->n = (size_t)(q->mb * 1e6 / sizeof(float));
    if (q->algorithm != ALL && !is_asked(q, q->algorithm - 1))
        return fail("simulate: op=%s has no algorithm=%s; try: "
                    "algorithm=linear or tree",
                    schedule_op_names[q->op], algorithms[q->algorithm]);
    for (int i = 0; i < q->workers.n; i++)
        if (q->n < (size_t)q->workers.at[i])
            return fail("simulate: %zu numbers for %d workers; try: mb=1", q->n,
                        q->workers.at[i]);
    return 0;
}

// ---- the answer

static int row(const struct question *q, int workers, int algorithm, FILE *f)
{
    const char *name = schedule_algorithm_names[algorithm];
    size_t piece = (size_t)(q->slice_kb * 1024 / sizeof(float));
    struct schedule schedule = {.op = (enum schedule_op)q->op,
                                .algorithm = (enum schedule_algorithm)algorithm,
                                .world = workers,
                                .n = q->n,
                                .piece = piece < q->n ? piece : q->n};
    struct simulation s = {.name = schedule_op_names[q->op],
                           .backend = backend_at(0), // no servers
                           .folder = q->out,
                           .schedule = &schedule,
                           .workers = workers,
                           .n = q->n,
                           .link = q->link,
                           .payload = q->payload,
                           .default_network = q->network,
                           .timeout_s = q->timeout_s};
    struct simulated r;
    struct law law = schedule_law(&schedule);
    double bytes = (double)q->n * sizeof(float);
    double seconds = law_seconds(&law, &q->link, bytes);
    if (simulation_run(&s, &r))
        return -1;
    printf("%7d  %-9s  %-9s %13.6g %12.6g %8.4f %9.1f %12.0f\n", workers,
           s.name, name, r.seconds, seconds, r.seconds / seconds, r.wall_s,
           r.memory_mb);
    fflush(stdout);
    fprintf(f, "%d,%s,%s,%.9g,%.9g,%.9g,%.6f,%.2f,%.0f\n", workers, s.name,
            name, bytes * 1e-6, r.seconds, seconds, r.seconds / seconds,
            r.wall_s, r.memory_mb);
    return fflush(f) ? fail("%s: %s", q->out, strerror(errno)) : 0;
}

static int answer(const struct question *q)
{
    char path[CONFIG_PATH];
    if (file_make_folder(q->out) < 0 ||
        text_into(path, sizeof path, "%s/collectives.csv", q->out))
        return -1;
    FILE *f = fopen(path, "we");
    if (!f)
        return fail("%s: %s", path, strerror(errno));
    int rc = 0;
    fprintf(f, "workers,op,algorithm,mb,simulated_s,law_s,ratio,wall_s,"
               "memory_mb\n");
    printf("a vector of %.4g MB; links of %.4g MB/s of payload, %g us\n\n"
           "%7s  %-9s  %-9s %13s %12s %8s %9s %12s\n",
           (double)q->n * sizeof(float) * 1e-6, q->link.bytes_per_s * 1e-6,
           q->link.alpha_s * 1e6, "workers", "op", "algorithm", "simulated (s)",
           "law (s)", "ratio", "took (s)", "memory (MB)");
    for (int i = 0; !rc && i < q->workers.n; i++)
        for (int a = 0; !rc && a < SCHEDULE_ALGORITHMS; a++)
            if (is_asked(q, a))
                rc = row(q, q->workers.at[i], a, f);
    if (fclose(f) && !rc)
        rc = fail("%s: %s", path, strerror(errno));
    if (!rc)
        printf("\n%s\n", path);
    return rc;
}

int simulate_op(int nwords, char **words)
{
    struct question *q = mem_alloc(1, sizeof *q);
    int rc = q ? 0 : -1;
    if (!rc)
        rc = ask(q, nwords, words) || simulation_check() || answer(q) ? -1 : 0;
    mem_free(q);
    return rc;
}
