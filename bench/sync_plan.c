// sync_plan.c - the rows of sync_perf's table, and its command line.

#include "bench/sync_plan.h"

#include "bench/echo.h"
#include "bench/loop.h"
#include "bench/openmpi.h"
#include "bench/workers.h"

#include "base/base.h"
#include "config/keys.h"
#include "config/suggest.h"
#include "group/group.h"
#include "sync/derive.h"
#include "train/ways.h"

#include <string.h>

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct backend echo = {.name = "zmq-echo",
                                    .keys = KEYS("wire", "slice_kb"),
                                    .servers = 1,
                                    .traffic = TRAFFIC_SERVERS};
static const struct backend echos = {.name = "zmq-echo",
                                     .keys = KEYS("wire", "slice_kb"),
                                     .servers = -1,
                                     .traffic = TRAFFIC_SERVERS};
static const struct backend loop = {.name = "loop",
                                    .keys = KEYS("iface"),
                                    .traffic = TRAFFIC_RING};
static const struct backend openmpi = {.name = "openmpi",
                                       .keys = KEYS("algorithm"),
                                       .traffic = TRAFFIC_LIBRARY};
static const struct backend segments = {.name = "openmpi",
                                        .keys = KEYS("slice_kb"),
                                        .traffic = TRAFFIC_RING};

static const struct row peers[] = {
    {"zmq-echo", &echo, .ops = &sync_echo},
    {"zmq-echos", &echos, .ops = &sync_echo},
    {"loop", &loop, .ops = &sync_loop},
    {"mpi", &openmpi, .ops = &sync_openmpi},
    {"mpi-doubling", &openmpi, &sync_openmpi, .algorithm = ALGORITHM_DOUBLING},
    {"mpi-ring", &openmpi, &sync_openmpi, .algorithm = ALGORITHM_RING},
    {"mpi-segments", &segments, &sync_openmpi, .slice_kb = 1024},
    {"mpi-halving", &openmpi, &sync_openmpi, .algorithm = ALGORITHM_HALVING},
};

enum { PEERS = sizeof peers / sizeof *peers };

static struct row *add_row(struct sync_plan *p, const struct row *r)
{
    CHECK(p->nrows < PLAN_ROWS);
    p->rows[p->nrows] = *r;
    return &p->rows[p->nrows++];
}

// Adds a row for each of a backend's carriers that work on host memory. The
// first is that of the last of our own carriers, or of a library's if there is
// no other. It has the backend's name without the carrier's.
static void add_carriers(struct sync_plan *p, struct row r,
                         const struct group_ops *const *carriers)
{
    int n = 0, plain = 0;
    for (; carriers[n]; n++)
        if (!carriers[n]->library || carriers[plain]->library)
            plain = n;
    for (int k = 0; k < n; k++) {
        r.carrier = carriers[(plain - k + n) % n];
        r.mpi = !strcmp(r.carrier->name, "mpi");
        if (k)
            snprintf(r.name, sizeof r.name, "%s-%s", r.backend->name,
                     r.carrier->name);
        if (!r.carrier->on_device)
            add_row(p, &r);
    }
}

// Adds our backends, in the order of the table of backends; then the peers.
static void add_rows(struct sync_plan *p)
{
    const struct backend *b;
    for (int i = 0; (b = backend_at(i)); i++) {
        const struct way *way = way_find(b);
        struct row r = {.backend = b, .ops = way->strategy};
        snprintf(r.name, sizeof r.name, "%s", b->name);
        if (!backend_has_law(b))
            continue;
        if (*way->carriers)
            add_carriers(p, r, way->carriers);
        else
            add_row(p, &r);
    }
    for (int i = 0; i < PEERS; i++) {
        struct row *r = add_row(p, &peers[i]);
        r->peer = true;
        r->mpi = r->ops == &sync_openmpi;
    }
}

// ---- the command line

#define AT(member) offsetof(struct sync_plan, member), false

static const struct key rows[] = {
    {"bench sync", "sync", "all", KEY_TEXT, AT(sync_text), .unit = "ROW,..",
     .help = "rows to measure"},
    {"bench sync", "workers", "2", KEY_INT, AT(workers), .min = 2,
     .max = WORKERS_MOST,
     .help = "worker processes; not under mpirun, where -n counts"},
    {"bench sync", "rounds", "5", KEY_INT, AT(rounds), .min = 1,
     .max = PLAN_ROUNDS,
     .help = "in each round all rows take turns; times are medians"},
    {"bench sync", "threads", "1", KEY_INT, AT(threads), .min = 1, .max = 1024,
     .help = "threads of a worker, and of a server"},
    {"bench sync", "min_bytes", "4", KEY_NUMBER, AT(min_bytes), .min = 4,
     .max = 1e12, .unit = "B", .help = "size of the smallest vector"},
    {"bench sync", "max_mb", "512", KEY_NUMBER, AT(max_mb), .min = 4e-6,
     .max = 65536, .unit = "MiB", .help = "size of the largest vector"},
    {"bench sync", "factor", "4", KEY_NUMBER, AT(factor), .min = 1.1,
     .max = 1e6, .help = "each size is this many times the last"},
    {"bench sync", "bucket_mb", "0", KEY_NUMBER, AT(bucket_mb), .min = 0,
     .max = 4096, .zero = "1/40 of the vector, 1 to 25 MiB", .unit = "MiB",
     .help = "size of a bucket of gradients"},
    {"bench sync", "timeout", "60", KEY_NUMBER, AT(timeout_s), .min = 0.05,
     .max = 86400, .unit = "s", .help = "longest wait for another process"},
    {"bench sync", "link", "", KEY_TEXT, AT(link_text), .unit = "RATE|FILE",
     .help = "link of the law: 25gbit, 3MB/s or a file that out= wrote; "
             "default: fitted"},
    {"bench sync", "out", "", KEY_TEXT, AT(out), .unit = "FILE",
     .help = "writes the link fitted to each row to FILE"},
    {"bench sync", "server_host", "", KEY_TEXT, AT(server_host), .unit = "NAME",
     .help = "emulated host of the server, if there is one"},
};

static const struct key_table keys = {rows, sizeof rows / sizeof *rows,
                                      "lockstep bench sync --help"};

enum { KEYS_OWN = sizeof rows / sizeof *rows };

static void print_help(const struct sync_plan *p)
{
    printf("lockstep bench sync [key=value] ...\n\nThe time of each backend at "
           "each size, beside the time that the law predicts.\n");
    key_help(stdout, &keys);
    printf("\nsync=");
    for (int i = 0; i < p->nrows; i++)
        printf("%s%s", i ? "," : "", p->rows[i].name);
    printf("\n\nA backend's keys (lockstep train --help) are for all of our "
           "backends, or with\na row's name in front for this row alone:\n"
           "  lockstep bench sync max_mb=25 wire=fp16 ring.slice_kb=128\n"
           "  lockstep bench sync workers=4 sync=ring,allreduce\n"
           "  lockstep bench sync net=1gbit workers=4     on emulated hosts\n");
}

static int choose(struct sync_plan *p)
{
    const char *names[PLAN_ROWS];
    for (int i = 0; i < p->nrows; i++)
        names[i] = p->rows[i].name;
    return table_choose("bench sync", "sync", p->sync_text, names, p->nrows,
                        p->use);
}

static int fail_unknown(const char *key)
{
    const char *names[KEYS_OWN + CONFIG_KEYS];
    int n = 0;
    for (; n < KEYS_OWN; n++)
        names[n] = rows[n].name;
    for (int i = 0; i < run_keys.n; i++)
        if (run_keys.rows[i].backend)
            names[n++] = run_keys.rows[i].name;
    char nearest[SUGGEST_TEXT];
    return fail("unknown key %s%s; all: lockstep bench sync --help", key,
                suggest_text(nearest, "; nearest: ", key, names, n));
}

// Takes "key=value" for all of our backends, "ring.key=value" for one row.
static int set_rows(struct sync_plan *p, const char *word)
{
    const char *value = strchr(word, '=') + 1;
    size_t len = strcspn(word, "=");
    const char *dot = memchr(word, '.', len), *at = dot ? dot + 1 : word;
    char key[CONFIG_WORD];
    bool given = false;
    snprintf(key, sizeof key, "%.*s", (int)(word + len - at), at);
    const struct key *k = key_find(&run_keys, key);
    if (!k || !k->backend)
        return fail_unknown(key);
    for (int i = 0; i < p->nrows; i++) {
        const char *name = p->rows[i].name;
        bool own = dot && strlen(name) == (size_t)(dot - word) &&
                   !strncmp(word, name, strlen(name));
        if (!own && (dot || p->rows[i].peer))
            continue;
        given = true;
        if (settings_set(&p->asked[i], key, value))
            return -1;
        if (!backend_reads(p->rows[i].backend, key))
            p->unread[i] = word;
    }
    return given ? 0
                 : fail("%s: no row of that name; all: lockstep bench sync "
                        "--help",
                        word);
}

static int take(struct sync_plan *p, const char *word)
{
    const char *value = strchr(word, '=');
    char name[CONFIG_WORD];
    if (!value)
        return fail("%s: not key=value; all: lockstep bench sync --help", word);
    snprintf(name, sizeof name, "%.*s", (int)(value - word), word);
    const struct key *k = key_find(&keys, name);
    if (k)
        return key_set(k, p, value + 1);
    if (!strcmp(name, "net"))
        return fail("%s: try: lockstep bench sync %s", word, word);
    return set_rows(p, word);
}

int plan_parse(struct sync_plan *p, bool launched, int nwords, char **words)
{
    *p = (struct sync_plan){0};
    key_defaults(&keys, p);
    add_rows(p);
    for (int i = 0; i < p->nrows; i++) {
        const struct row *r = &p->rows[i];
        p->use[i] = launched || !r->mpi;
        settings_defaults(&p->asked[i]);
        p->asked[i].every = 1; // so every step has an exchange
        p->asked[i].algorithm = r->algorithm;
        if (r->slice_kb)
            p->asked[i].slice_kb = r->slice_kb;
    }
    for (int i = 0; i < nwords; i++) {
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h")) {
            print_help(p);
            return 1;
        }
        if (take(p, words[i]))
            return -1;
    }
    p->all = !strcmp(p->sync_text, "all");
    if ((!p->all && choose(p)) ||
        (*p->link_text && links_read(&p->links, p->link_text, 0)))
        return -1;
    for (int i = 0; i < p->nrows; i++)
        if (p->use[i] && p->rows[i].mpi && !launched)
            return fail("sync=%s: requires MPI; try: lockstep bench sync "
                        "sync=%s",
                        p->rows[i].name, p->rows[i].name);
    for (int i = 0; i < p->nrows; i++)
        if (p->use[i] && p->asked[i].squeeze)
            return fail("squeeze=: bench sync checks sums, and compressed "
                        "gradients have others; try: lockstep bench squeeze");
    for (int i = 0; i < p->nrows; i++)
        if (p->all && p->unread[i])
            p->use[i] = false;
        else if (p->use[i] && p->unread[i])
            return fail("%s: %s has no such setting; try: leave it out",
                        p->unread[i], p->rows[i].name);
    p->nsizes = table_sizes(p->min_bytes, p->max_mb, p->factor, p->counts);
    return 0;
}

struct law plan_law(const struct sync_plan *p, int row, int world)
{
    const struct row *r = &p->rows[row];
    struct sync_settings set = p->asked[row];
    sync_derive(&set, r->backend, world, 0);
    struct law_case is = {.workers = world,
                          .held = !r->peer && sync_holds(&set, r->backend),
                          .algorithm = set.algorithm};
    return law_of(r->backend, &is);
}
