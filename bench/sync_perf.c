// sync_perf.c - how fast each backend is, by size, beside the law.
//
//     sync_perf workers=4                       starts its own workers
//     mpirun -n 4 sync_perf sync=ring,allreduce interleaved, in the same run
//     sync_perf workers=2 max_mb=25 wire=fp16 ring.slice_kb=128
//
// ring is the ring over TCP, ring-shm the one in shared memory; under mpirun the
// rows mpi.. are MPI's own all-reduce by each of Open MPI's algorithms, over
// whatever mpirun's settings make it use, and a last table sets ours beside the
// fastest of them at each size. Parameter servers are threads of the workers' processes: sps has its one in
// worker 0's, dps one in each. A row is one backend; at each size they take
// turns, round by round, on the same vectors.
//
// The columns are nccl-tests': size in bytes and count of gradients, the number
// format on the wire, the time from the first bucket handed over to the sum
// complete on this worker (mean over workers, median over rounds; where a
// server updates, to the new parameters), algbw = size/time, busbw = algbw *
// 2(n-1)/n, and how many results are wrong. Beside them the law's time, for the
// link of alpha_us= and gb_s= or, without, for the link fitted to the backend's
// own times; and the processor seconds of the whole step, update included, per
// GB of payload that left.

#include "bench/crew.h"
#include "bench/entrant.h"
#include "bench/law.h"
#include "bench/openmpi.h"

#include "allreduce/allreduce.h"
#include "horovod_ring/ring.h"
#include "ps_worker/ps_worker.h"

#include "base/base.h"
#include "base/half.h"
#include "config/config.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 64, MAX_ROUNDS = 101, MAX_TEXT = 512 };

static const struct row {
    const char *name;
    const struct sync_ops *ops;
    struct law (*law)(int world);
    bool mpi;         // only under mpirun
    bool peer;        // not ours: given no settings but its own
    int servers;      // -1: one beside each worker
    const char *opts; // always
} rows[] = {
    {"sps", &sync_sps, law_server, false, false, 1, ""},
    {"dps", &sync_dps, law_shards, false, false, -1, ""},
    {"ring", &sync_ring, law_ring, false, false, 0, "transport=tcp"},
    {"ring-shm", &sync_ring_shared, law_ring, false, false, 0, ""},
    {"allreduce", &sync_allreduce, law_ring, true, false, 0, ""},
    {"mpi", &sync_openmpi, law_ring, true, true, 0, ""},
    {"mpi-doubling", &sync_openmpi, law_ring, true, true, 0, "algorithm=3"},
    {"mpi-ring", &sync_openmpi, law_ring, true, true, 0, "algorithm=4"},
    {"mpi-segments", &sync_openmpi, law_ring, true, true, 0,
     "algorithm=5,segment_kb=1024"},
    {"mpi-halving", &sync_openmpi, law_ring, true, true, 0, "algorithm=6"},
};

enum { ROWS = sizeof rows / sizeof *rows };

struct plan {
    int workers, rounds, threads;
    double min_bytes, max_mb, factor, bucket_mb, timeout_s;
    struct link given; // bytes_per_s 0: fit
    bool use[ROWS];
    char opts[ROWS][MAX_TEXT];
    size_t counts[MAX_SIZES]; // of gradients
    int nsizes;
};

struct cell {         // one backend at one size, all workers together
    struct cost cost; // seconds: of a step; the rest of all rounds
    double wrong;
};

// ---- settings

static double number(const char *key, const char *value, double min, double max)
{
    char *end;
    double v = strtod(value, &end);
    if (*end || end == value || !(v >= min && v <= max))
        die("%s=%s: want a number, %g .. %g", key, value, min, max);
    return v;
}

static void choose(struct plan *p, const char *names)
{
    char text[MAX_TEXT];
    if (text_into(text, sizeof text, ",%s,", names))
        die("%s", fail_message());
    int found = 0, asked = 1;
    for (const char *c = names; *c; c++)
        asked += *c == ',';
    for (int i = 0; i < ROWS; i++) {
        char name[32];
        snprintf(name, sizeof name, ",%s,", rows[i].name);
        p->use[i] = strstr(text, name);
        found += p->use[i];
    }
    if (found == asked)
        return;
    char known[MAX_TEXT] = "";
    for (int i = 0; i < ROWS; i++)
        strcat(strcat(known, i ? "," : ""), rows[i].name);
    die("sync=%s: not all are known; try: %s", names, known);
}

// "key=value" for every backend, "ring.key=value" for one.
static void hand_on(struct plan *p, const char *word)
{
    for (int i = 0; i < ROWS; i++) {
        const char *name = rows[i].name, *key = word;
        size_t len = strlen(name);
        bool own = !strncmp(word, name, len) && word[len] == '.';
        if (own)
            key += len + 1;
        else if (rows[i].peer || memchr(word, '.', strcspn(word, "=")))
            continue;
        size_t used = strlen(p->opts[i]);
        if (text_into(p->opts[i] + used, MAX_TEXT - used, "%s%s",
                      used ? "," : "", key))
            die("%s", fail_message());
    }
}

static void parse(struct plan *p, int nwords, char **words)
{
    for (int i = 0; i < nwords; i++) {
        const char *w = words[i], *value = strchr(w, '=');
        if (!value)
            die("%s: want key=value", w);
        size_t len = (size_t)(value++ - w);
#define IS(key) (len == strlen(key) && !memcmp(w, key, len))
        if (IS("workers"))
            p->workers = (int)number("workers", value, 2, CREW_MOST);
        else if (IS("rounds"))
            p->rounds = (int)number("rounds", value, 1, MAX_ROUNDS);
        else if (IS("threads"))
            p->threads = (int)number("threads", value, 1, 1024);
        else if (IS("min_bytes"))
            p->min_bytes = number("min_bytes", value, 4, 1e12);
        else if (IS("max_mb"))
            p->max_mb = number("max_mb", value, 4e-6, 65536);
        else if (IS("factor"))
            p->factor = number("factor", value, 1.1, 1e6);
        else if (IS("bucket_mb"))
            p->bucket_mb = number("bucket_mb", value, 0.001, 4096);
        else if (IS("timeout"))
            p->timeout_s = number("timeout", value, 0.05, 86400);
        else if (IS("alpha_us"))
            p->given.alpha_s = number("alpha_us", value, 0, 1e6) * 1e-6;
        else if (IS("gb_s"))
            p->given.bytes_per_s = number("gb_s", value, 1e-6, 1e6) * 1e9;
        else if (IS("sync"))
            choose(p, value);
        else
            hand_on(p, w);
#undef IS
    }
    double most = p->max_mb * 1048576;
    for (double b = p->min_bytes; p->nsizes < MAX_SIZES; b *= p->factor) {
        bool last = b * p->factor > most * 1.001 && b < most * 0.999;
        p->counts[p->nsizes++] = (size_t)(b / sizeof(float));
        if (last && p->nsizes < MAX_SIZES)
            p->counts[p->nsizes++] = (size_t)(most / sizeof(float));
        if (b * p->factor > most * 1.001)
            break;
    }
}

// ---- all backends at one size

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t bucket_elements(const struct plan *p)
{
    return (size_t)(p->bucket_mb * 1048576 / sizeof(float));
}

static int open_all(const struct plan *p, struct arena *a, struct entrant *e)
{
    struct cost warm = {0};
    for (int i = 0; i < ROWS; i++)
        if (p->use[i] &&
            (entrant_open(&e[i], a, rows[i].ops, p->opts[i], rows[i].servers) ||
             entrant_run(&e[i], 2, &warm)))
            return -1;
    return 0;
}

// The backends take turns, since a machine's speed drifts.
static int run_rounds(const struct plan *p, struct entrant *e,
                      struct cell *cells, double (*times)[MAX_ROUNDS])
{
    size_t n = e->arena->n;
    int each = n <= 1 << 14 ? 50 : n <= 1 << 20 ? 6 : 2;
    for (int round = 0; round < p->rounds; round++) {
        for (int i = 0; i < ROWS; i++) {
            struct cost *c = &cells[i].cost;
            double before = c->seconds;
            if (p->use[i] && entrant_run(&e[i], each, c))
                return -1;
            times[i][round] = (c->seconds - before) / each;
        }
    }
    return 0;
}

// The mean over workers of each round, then the median of rounds.
static int gather(const struct plan *p, struct entrant *e, struct cell *c,
                  double *times)
{
    struct cluster *cluster = e->arena->cluster;
    if (entrant_check(e) || cluster_sum(cluster, times, p->rounds))
        return -1;
    qsort(times, (size_t)p->rounds, sizeof(double), by_value);
    double sums[] = {c->cost.cpu_s, c->cost.bytes_out, (double)e->wrong};
    if (cluster_sum(cluster, sums, 3))
        return -1;
    *c =
        (struct cell){.cost = {.seconds = times[p->rounds / 2] / cluster->world,
                               .cpu_s = sums[0],
                               .bytes_out = sums[1]},
                      .wrong = sums[2]};
    return 0;
}

static int measure(const struct plan *p, struct cluster *cluster, size_t n,
                   struct cell *cells)
{
    static struct arena arena;
    static struct entrant entrants[ROWS];
    double times[ROWS][MAX_ROUNDS];
    memset(cells, 0, ROWS * sizeof *cells);
    memset(entrants, 0, sizeof entrants);
    for (int i = 0; i < ROWS; i++)
        entrants[i].arena = &arena;
    int rc = arena_open(&arena, cluster, n, bucket_elements(p), p->threads) ||
                     open_all(p, &arena, entrants) ||
                     run_rounds(p, entrants, cells, times)
                 ? -1
                 : 0;
    for (int i = 0; !rc && i < ROWS; i++)
        if (p->use[i])
            rc = gather(p, &entrants[i], &cells[i], times[i]);
    for (int i = 0; i < ROWS; i++)
        if (entrant_close(&entrants[i], rc))
            rc = -1;
    arena_close(&arena);
    return rc;
}

// ---- the table

static const char *wire_of(const struct plan *p, int row)
{
    const char *at = strstr(p->opts[row], "wire=");
    for (enum dtype t = DTYPE_F16; at && t <= DTYPE_BF16; t++)
        if (!strncmp(at + 5, dtype_name(t), 4))
            return dtype_name(t);
    return dtype_name(DTYPE_F32);
}

static void print_row(const struct plan *p, int row, int world,
                      const struct cell (*cells)[ROWS])
{
    struct law law = rows[row].law(world);
    struct link link = p->given;
    double bytes[MAX_SIZES], seconds[MAX_SIZES];
    double wire = strcmp(wire_of(p, row), "fp32") ? 0.5 : 1;
    for (int i = 0; i < p->nsizes; i++) {
        bytes[i] = wire * sizeof(float) * (double)p->counts[i];
        seconds[i] = cells[i][row].cost.seconds;
    }
    if (link.bytes_per_s == 0)
        law_fit(&law, bytes, seconds, p->nsizes, &link);
    printf("\n# %s, %d workers: ", rows[row].name, world);
    if (link.bytes_per_s > 0)
        printf("alpha %.1f us, %.2f GB/s each way (%s)\n", link.alpha_s * 1e6,
               link.bytes_per_s * 1e-9,
               p->given.bytes_per_s > 0 ? "given" : "fitted");
    else
        printf("no link explains the times\n");
    printf("#%11s %11s %5s %11s %8s %8s %7s %11s %9s\n", "size(B)", "count",
           "type", "time(us)", "algbw", "busbw", "#wrong", "law(us)",
           "cpu_s/GB");
    for (int i = 0; i < p->nsizes; i++) {
        const struct cell *c = &cells[i][row];
        double size = sizeof(float) * (double)p->counts[i];
        double algbw = size / c->cost.seconds * 1e-9;
        printf(" %11.0f %11zu %5s %11.1f %8.3f %8.3f %7.0f", size, p->counts[i],
               wire_of(p, row), c->cost.seconds * 1e6, algbw,
               algbw * 2 * (world - 1) / world, c->wrong);
        if (link.bytes_per_s > 0)
            printf(" %11.1f", law_seconds(&law, &link, bytes[i]) * 1e6);
        else
            printf(" %11s", "-");
        printf(" %9.3f\n", c->cost.bytes_out > 0
                               ? c->cost.cpu_s / (c->cost.bytes_out * 1e-9)
                               : 0);
    }
}

// A row that cannot run on these hosts is left out.
static int leave_out(struct plan *p, struct cluster *cluster)
{
    for (int i = 0; i < ROWS; i++) {
        struct sync_job job = {.cluster = cluster};
        if (!p->use[i] || !rows[i].ops->suits)
            continue;
        if (opts_open(&job.opts, p->opts[i]))
            return -1;
        int suits = rows[i].ops->suits(&job);
        opts_close(&job.opts);
        if (suits < 0)
            return -1;
        if (!suits && cluster->rank == 0)
            printf("# %s: not on these hosts\n", rows[i].name);
        p->use[i] = suits;
    }
    return 0;
}

// Every backend of ours beside the fastest peer at each size: how many times
// faster it is.
static void print_ratios(const struct plan *p, const struct cell (*cells)[ROWS])
{
    bool peers = false;
    for (int i = 0; i < ROWS; i++)
        peers |= p->use[i] && rows[i].peer;
    if (!peers)
        return;
    printf("\n# times faster than the fastest of Open MPI's\n#%11s", "size(B)");
    for (int i = 0; i < ROWS; i++)
        if (p->use[i] && !rows[i].peer)
            printf(" %10s", rows[i].name);
    printf("  fastest\n");
    for (int k = 0; k < p->nsizes; k++) {
        int best = -1;
        for (int i = 0; i < ROWS; i++)
            if (p->use[i] && rows[i].peer &&
                (best < 0 ||
                 cells[k][i].cost.seconds < cells[k][best].cost.seconds))
                best = i;
        printf(" %11zu", p->counts[k] * sizeof(float));
        for (int i = 0; i < ROWS; i++)
            if (p->use[i] && !rows[i].peer)
                printf(" %10.2f",
                       cells[k][best].cost.seconds / cells[k][i].cost.seconds);
        printf("  %s\n", rows[best].name);
    }
}

static int work(struct cluster *cluster, void *arg)
{
    struct plan *p = arg;
    static struct cell cells[MAX_SIZES][ROWS];
    omp_set_num_threads(p->threads);
    if (leave_out(p, cluster))
        return -1;
    for (int i = 0; i < p->nsizes; i++)
        if (measure(p, cluster, p->counts[i], cells[i]))
            return -1;
    double wrong = 0;
    for (int i = 0; i < ROWS; i++) {
        if (p->use[i] && cluster->rank == 0)
            print_row(p, i, cluster->world, (const struct cell(*)[ROWS])cells);
        for (int k = 0; p->use[i] && k < p->nsizes; k++)
            wrong += cells[k][i].wrong;
    }
    if (cluster->rank == 0)
        print_ratios(p, (const struct cell(*)[ROWS])cells);
    fflush(stdout);
    return wrong > 0 ? fail("%.0f results are wrong", wrong) : 0;
}

int main(int argc, char **argv)
{
    static struct plan p = {
        .workers = 2,
        .rounds = 5,
        .threads = 1,
        .min_bytes = 4,
        .max_mb = 512,
        .factor = 4,
        .bucket_mb = 25,
        .timeout_s = 60,
    };
    int rank, world;
    bool launched = cluster_launched(&rank, &world);
    for (int i = 0; i < ROWS; i++)
        p.use[i] = launched || !rows[i].mpi;
    for (int i = 0; i < ROWS; i++)
        snprintf(p.opts[i], MAX_TEXT, "%s", rows[i].opts);
    parse(&p, argc - 1, argv + 1);
    openmpi_prepare();
    for (int i = 0; i < ROWS; i++)
        if (p.use[i] && rows[i].mpi && !launched)
            die("sync=%s: try: mpirun -n %d sync_perf ...", rows[i].name,
                p.workers);
    return crew_run(launched, p.workers, p.timeout_s, work, &p) ? 1 : 0;
}
