// sync_plan.c - the rows of sync_perf's table, and its words.

#include "bench/sync_plan.h"

#include "bench/crew.h"
#include "bench/echo.h"
#include "bench/loop.h"
#include "bench/openmpi.h"

#include "base/base.h"
#include "config/keys.h"
#include "config/suggest.h"
#include "group/group.h"
#include "sync/derive.h"
#include "train/backends.h"

#include <stdlib.h>
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
    {.name = "zmq-echo", .backend = &echo, .ops = &sync_echo},
    {.name = "zmq-echos", .backend = &echos, .ops = &sync_echo},
    {.name = "loop", .backend = &loop, .ops = &sync_loop},
    {.name = "mpi", .backend = &openmpi, .ops = &sync_openmpi, .mpi = true},
    {.name = "mpi-doubling",
     .backend = &openmpi,
     .ops = &sync_openmpi,
     .mpi = true,
     .algorithm = ALGORITHM_DOUBLING},
    {.name = "mpi-ring",
     .backend = &openmpi,
     .ops = &sync_openmpi,
     .mpi = true,
     .algorithm = ALGORITHM_RING},
    {.name = "mpi-segments",
     .backend = &segments,
     .ops = &sync_openmpi_segments,
     .mpi = true,
     .slice_kb = 1024},
    {.name = "mpi-halving",
     .backend = &openmpi,
     .ops = &sync_openmpi,
     .mpi = true,
     .algorithm = ALGORITHM_HALVING},
};

enum { PEERS = sizeof peers / sizeof *peers };

static struct row *add_row(struct sync_plan *p, const struct row *r)
{
    CHECK(p->nrows < PLAN_ROWS);
    p->rows[p->nrows] = *r;
    return &p->rows[p->nrows++];
}

// A backend's carriers of host memory, the last of which has its name alone.
static void add_carriers(struct sync_plan *p, struct row r,
                         const struct group_ops *const *carriers)
{
    int n = 0;
    while (carriers[n])
        n++;
    for (int i = n - 1; i >= 0; i--) {
        r.carrier = carriers[i];
        r.mpi = !strcmp(r.carrier->name, "mpi");
        if (i < n - 1)
            snprintf(r.name, sizeof r.name, "%s-%s", r.backend->name,
                     r.carrier->name);
        if (!r.carrier->on_device)
            add_row(p, &r);
    }
}

// Ours in the order of the table of backends, then the peers.
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
    for (int i = 0; i < PEERS; i++)
        add_row(p, &peers[i])->peer = true;
}

// ---- words

// What a word sets: a double, or an int where `whole`.
static const struct setting {
    const char *name, *help;
    size_t off;
    bool whole;
    double usual, min, max;
} settings[] = {
#define AT(member) offsetof(struct sync_plan, member)
    {"workers", "processes to start; mpirun's -n says it there", AT(workers),
     true, 2, 2, CREW_MOST},
    {"rounds", "in which all rows take turns; times are medians", AT(rounds),
     true, 5, 1, PLAN_ROUNDS},
    {"threads", "of a worker, and of a server", AT(threads), true, 1, 1, 1024},
    {"min_bytes", "of the smallest vector", AT(min_bytes), false, 4, 4, 1e12},
    {"max_mb", "MiB of the largest", AT(max_mb), false, 512, 4e-6, 65536},
    {"factor", "from size to size", AT(factor), false, 4, 1.1, 1e6},
    {"bucket_mb", "MiB of gradients that travel together; 0: as in training",
     AT(bucket_mb), false, 0, 0, 4096},
    {"timeout", "s, longest wait for anybody", AT(timeout_s), false, 60, 0.05,
     86400},
#undef AT
};

enum { SETTINGS = sizeof settings / sizeof *settings };

static void set(struct sync_plan *p, const struct setting *s, double v)
{
    void *at = (char *)p + s->off;
    if (s->whole)
        *(int *)at = (int)v;
    else
        *(double *)at = v;
}

static void print_help(const struct sync_plan *p)
{
    printf("sync_perf [key=value] ...\n\nHow fast each backend is, by size, "
           "beside the law.\n\n");
    for (int i = 0; i < SETTINGS; i++)
        printf("  %-12s %-9g %s\n", settings[i].name, settings[i].usual,
               settings[i].help);
    printf("  %-12s %-9s rows to measure, of ", "sync", "all");
    for (int i = 0; i < p->nrows; i++)
        printf("%s%s", i ? "," : "", p->rows[i].name);
    printf("\n  %-12s %-9s the law's: a rate, as 25gbit, or a file of out=; "
           "else fitted\n",
           "link", "-");
    printf("  %-12s %-9s file for the links fitted to each row\n", "out", "-");
    printf("\nA backend's keys (lockstep train --help) go to all rows of ours, "
           "or to one:\n  sync_perf workers=2 max_mb=25 wire=fp16 "
           "ring.slice_kb=128\n  mpirun -n 4 sync_perf sync=ring,allreduce\n"
           "  lockstep bench sync workers=4               the same, all rows\n"
           "  lockstep bench sync net=1gbit workers=4     on emulated hosts\n");
}

static int choose(struct sync_plan *p, const char *names)
{
    char text[512], known[512] = "";
    if (text_into(text, sizeof text, ",%s,", names))
        return -1;
    int found = 0, asked = 1;
    p->all = false;
    for (const char *c = names; *c; c++)
        asked += *c == ',';
    for (int i = 0; i < p->nrows; i++) {
        char name[32];
        snprintf(name, sizeof name, ",%s,", p->rows[i].name);
        p->use[i] = strstr(text, name);
        found += p->use[i];
        strcat(strcat(known, i ? "," : ""), p->rows[i].name);
    }
    return found == asked
               ? 0
               : fail("sync=%s: not all are known; try: %s", names, known);
}

static int fail_unknown(const char *key)
{
    const char *names[SETTINGS + 8 + CONFIG_KEYS] = {"sync", "link", "out"};
    int n = 3;
    for (int i = 0; i < SETTINGS; i++)
        names[n++] = settings[i].name;
    for (int i = 0; i < run_keys.n; i++)
        if (run_keys.rows[i].backend)
            names[n++] = run_keys.rows[i].name;
    return fail("unknown key %s; nearest: %s; all: sync_perf --help", key,
                suggest_nearest(key, names, n));
}

// "key=value" for every backend of ours, "ring.key=value" for one row.
static int hand_on(struct sync_plan *p, const char *word)
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
                 : fail("%s: no row of that name; all: sync_perf --help", word);
}

static int take(struct sync_plan *p, const char *word)
{
    const char *value = strchr(word, '=');
    if (!value)
        return fail("%s: not key=value; all: sync_perf --help", word);
    size_t len = (size_t)(value++ - word);
    for (int i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        char *end;
        if (strlen(s->name) != len || memcmp(word, s->name, len))
            continue;
        double v = strtod(value, &end);
        if (*end || end == value || !(v >= s->min && v <= s->max))
            return fail("%s: want a number, %g .. %g", word, s->min, s->max);
        set(p, s, v);
        return 0;
    }
    if (!strncmp(word, "sync=", 5))
        return choose(p, value);
    if (!strncmp(word, "link=", 5))
        return links_read(&p->links, value, 0);
    if (!strncmp(word, "out=", 4))
        p->out = value;
    else if (!strncmp(word, "server_host=", 12))
        p->server_host = value;
    else if (!strncmp(word, "net=", 4))
        return fail("%s: try: lockstep bench sync %s", word, word);
    else
        return hand_on(p, word);
    return 0;
}

int plan_parse(struct sync_plan *p, bool launched, int nwords, char **words)
{
    *p = (struct sync_plan){.out = "", .server_host = "", .all = true};
    for (int i = 0; i < SETTINGS; i++)
        set(p, &settings[i], settings[i].usual);
    add_rows(p);
    for (int i = 0; i < p->nrows; i++) {
        const struct row *r = &p->rows[i];
        p->use[i] = launched || !r->mpi;
        settings_defaults(&p->asked[i]);
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
    for (int i = 0; i < p->nrows; i++)
        if (p->use[i] && p->rows[i].mpi && !launched)
            return fail("sync=%s: try: mpirun -n %d sync_perf ...",
                        p->rows[i].name, p->workers);
    for (int i = 0; i < p->nrows; i++)
        if (p->use[i] && p->unread[i])
            return fail("%s: %s has no such setting; try: leave it out",
                        p->unread[i], p->rows[i].name);
    p->nsizes = series_sizes(p->min_bytes, p->max_mb, p->factor, p->counts);
    return 0;
}

struct law plan_law(const struct sync_plan *p, int row, int world)
{
    const struct row *r = &p->rows[row];
    struct sync_settings set = p->asked[row];
    sync_derive(&set, r->backend, world, 0);
    struct law_case is = {.workers = world,
                          .held = !r->peer && set.update == UPDATER_SERVER,
                          .algorithm = set.algorithm};
    return law_of(r->backend, &is);
}
