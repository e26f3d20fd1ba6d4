// sync_plan.c - the rows of sync_perf's table, and its words.

#include "bench/sync_plan.h"

#include "allreduce/carriers.h"
#include "bench/crew.h"
#include "bench/echo.h"
#include "bench/loop.h"
#include "bench/openmpi.h"
#include "horovod_ring/carriers.h"
#include "ps_worker/ps_worker.h"

#include "base/base.h"
#include "config/keys.h"
#include "config/suggest.h"
#include "sync/derive.h"
#include "sync/replicas.h"

#include <stdlib.h>
#include <string.h>

static const struct backend echo = {
    .name = "zmq-echo",
    .keys = (const char *const[]){"wire", "slice_kb", NULL},
    .servers = true,
};
static const struct backend loop = {
    .name = "loop",
    .keys = (const char *const[]){"iface", NULL},
};
static const struct backend openmpi = {
    .name = "openmpi",
    .keys = (const char *const[]){"algorithm", NULL},
};
static const struct backend segments = {
    .name = "openmpi",
    .keys = (const char *const[]){"slice_kb", NULL},
};

const struct row plan_rows[PLAN_ROWS] = {
    {.name = "sps", .ops = &sync_servers, .servers = 1},
    {.name = "dps", .ops = &sync_servers, .law = law_shards, .servers = -1},
    {.name = "zmq-echo", .ops = &sync_echo, .servers = 1, .peer_row = &echo},
    {.name = "zmq-echos",
     .ops = &sync_echo,
     .law = law_shards,
     .servers = -1,
     .peer_row = &echo},
    {.name = "ring",
     .ops = &sync_replicas,
     .carrier = &ring_tcp,
     .law = law_ring},
    {.name = "ring-shm",
     .of = "ring",
     .ops = &sync_replicas,
     .carrier = &ring_shm,
     .law = law_ring},
    {.name = "loop", .ops = &sync_loop, .law = law_ring, .peer_row = &loop},
    {.name = "allreduce",
     .ops = &sync_replicas,
     .carrier = &library_mpi,
     .mpi = true},
    {.name = "mpi",
     .ops = &sync_openmpi,
     .law = law_ring,
     .mpi = true,
     .peer_row = &openmpi},
    {.name = "mpi-doubling",
     .ops = &sync_openmpi,
     .law = law_doubling,
     .mpi = true,
     .key = "algorithm",
     .value = "doubling",
     .peer_row = &openmpi},
    {.name = "mpi-ring",
     .ops = &sync_openmpi,
     .law = law_ring,
     .mpi = true,
     .key = "algorithm",
     .value = "ring",
     .peer_row = &openmpi},
    {.name = "mpi-segments",
     .ops = &sync_openmpi_segments,
     .law = law_ring,
     .mpi = true,
     .key = "slice_kb",
     .value = "1024",
     .peer_row = &segments},
    {.name = "mpi-halving",
     .ops = &sync_openmpi,
     .law = law_halving,
     .mpi = true,
     .key = "algorithm",
     .value = "halving",
     .peer_row = &openmpi},
};

bool plan_peer(int row)
{
    return plan_rows[row].peer_row;
}

const struct backend *plan_backend(int row)
{
    const struct row *r = &plan_rows[row];
    return r->peer_row ? r->peer_row : backend_row(r->of ? r->of : r->name);
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

static void print_help(void)
{
    printf("sync_perf [key=value] ...\n\nHow fast each backend is, by size, "
           "beside the law.\n\n");
    for (int i = 0; i < SETTINGS; i++)
        printf("  %-12s %-9g %s\n", settings[i].name, settings[i].usual,
               settings[i].help);
    printf("  %-12s %-9s rows to measure, of ", "sync", "all");
    for (int i = 0; i < PLAN_ROWS; i++)
        printf("%s%s", i ? "," : "", plan_rows[i].name);
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
    for (int i = 0; i < PLAN_ROWS; i++) {
        char name[32];
        snprintf(name, sizeof name, ",%s,", plan_rows[i].name);
        p->use[i] = strstr(text, name);
        found += p->use[i];
        strcat(strcat(known, i ? "," : ""), plan_rows[i].name);
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
    for (int i = 0; i < PLAN_ROWS; i++) {
        const char *name = plan_rows[i].name;
        bool own = dot && strlen(name) == (size_t)(dot - word) &&
                   !strncmp(word, name, strlen(name));
        if (!own && (dot || plan_peer(i)))
            continue;
        given = true;
        if (settings_set(&p->asked[i], key, value))
            return -1;
        if (!backend_reads(plan_backend(i), key))
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

static void cut_sizes(struct sync_plan *p)
{
    double most = p->max_mb * 1048576;
    for (double b = p->min_bytes; p->nsizes < PLAN_SIZES; b *= p->factor) {
        bool last = b * p->factor > most * 1.001 && b < most * 0.999;
        p->counts[p->nsizes++] = (size_t)(b / sizeof(float));
        if (last && p->nsizes < PLAN_SIZES)
            p->counts[p->nsizes++] = (size_t)(most / sizeof(float));
        if (b * p->factor > most * 1.001)
            break;
    }
}

int plan_parse(struct sync_plan *p, bool launched, int nwords, char **words)
{
    *p = (struct sync_plan){.out = "", .server_host = "", .all = true};
    for (int i = 0; i < SETTINGS; i++)
        set(p, &settings[i], settings[i].usual);
    for (int i = 0; i < PLAN_ROWS; i++) {
        p->use[i] = launched || !plan_rows[i].mpi;
        settings_defaults(&p->asked[i]);
        if (plan_rows[i].key &&
            settings_set(&p->asked[i], plan_rows[i].key, plan_rows[i].value))
            return -1;
    }
    for (int i = 0; i < nwords; i++) {
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h")) {
            print_help();
            return 1;
        }
        if (take(p, words[i]))
            return -1;
    }
    for (int i = 0; i < PLAN_ROWS; i++)
        if (p->use[i] && plan_rows[i].mpi && !launched)
            return fail("sync=%s: try: mpirun -n %d sync_perf ...",
                        plan_rows[i].name, p->workers);
    for (int i = 0; i < PLAN_ROWS; i++)
        if (p->use[i] && p->unread[i])
            return fail("%s: %s has no such setting; try: leave it out",
                        p->unread[i], plan_rows[i].name);
    cut_sizes(p);
    return 0;
}

// ---- rows

struct law plan_law(const struct sync_plan *p, int row, int world)
{
    const struct row *r = &plan_rows[row];
    struct sync_settings set = p->asked[row];
    sync_derive(&set, plan_backend(row), world, 0);
    if (r->law)
        return r->law(world);
    if (r->servers)
        return law_servers(world, r->servers,
                           !plan_peer(row) && set.update == UPDATER_SERVER);
    return law_allreduce(set.algorithm, world);
}
