// sync_perf.c - the speed of each backend by size, compared with the law.
//
//     lockstep bench sync workers=4             all rows, under mpirun
//     mpirun -n 4 sync_perf sync=ring,allreduce the same by hand
//     sync_perf workers=4                       rows without MPI
//     sync_perf workers=2 max_mb=25 wire=fp16 ring.slice_kb=128
//
// A row is one backend. At each size the backends take turns, round by round,
// on the same vectors. ring is the ring over TCP, ring-shm the ring in shared
// memory. Servers are threads of the workers' processes: sps has one server, in
// worker 0's process; dps has one in every worker's process.
//
// Some rows are peers, with which ours are compared. loop is the lower bound of
// a ring over TCP: a bare poll loop (loop.h). zmq-echo and zmq-echos are the
// peers of sps and dps: raw ZeroMQ sends the same slices to a server and back,
// and the server does no addition. Under mpirun there are also the rows mpi..:
// MPI's own all-reduce, one row for each of Open MPI's algorithms, over the
// transport that mpirun's settings choose. One more table compares each of our
// backends with its fastest peer at each size.
//
// The columns are those of nccl-tests:
//   size, count  of the gradients, in bytes and in elements
//   type         the number format on the wire
//   time         starts when the first bucket is handed over, and ends when the
//                sum is complete on this worker, or the new parameters where a
//                server updates; the mean over workers, the median over rounds
//   algbw        size / time
//   busbw        algbw * 2(n-1)/n, for n workers
//   #wrong       how many results are wrong
// and ours:
//   law          the law's time, for the link that link= gives; without link=,
//                for a link fitted to the backend's own times
//   off          by how much the measured time exceeds the law's
//   cpu_s/GB     processor seconds of the whole step, update included, for each
//                GB of payload sent
//   spread       the range of the middle half of the rounds' times, as a share
//                of the median
//
// If ring-shm runs, one more table gives its share of the memory's bandwidth,
// which plain loops measure in the same run. Gloo is measured
// by tests/oracle/gloo_allreduce.py, since in Debian only PyTorch contains it.

#include "bench/openmpi.h"
#include "bench/sync_plan.h"
#include "bench/tested.h"
#include "bench/workers.h"
#include "group/group.h"
#include "horovod_ring/carriers.h"
#include "sync/bucket.h"

#include "base/base.h"
#include "base/file.h"
#include "base/median.h"
#include "cluster/cluster.h"

#include <omp.h>
#include <string.h>

struct cell {         // one backend at one size, all workers together
    struct cost cost; // seconds: of one step; the others: sums of all rounds
    double spread;    // of the rounds' seconds: the range of their middle half
    double wrong;
};

enum { MEMORY = PLAN_ROWS, CELLS }; // MEMORY is no row: the memory's limit

// ---- the best rate of this machine's memory, with an all-reduce's accesses
//
// An all-reduce of S bytes in one pass reads and writes every worker's vector
// once: each worker reads S bytes and writes S bytes. Here every worker moves
// as many bytes in the simplest loop, s = x + y; x = s; y = s, over two vectors
// of its own of S/2 bytes each. All workers do this at once.

struct memory {
    float *x, *y;
    size_t n; // of each
};

// For an all-reduce of `count` elements.
static int memory_open(struct memory *m, size_t count)
{
    *m = (struct memory){.n = (count + 1) / 2};
    m->x = mem_alloc(m->n, sizeof *m->x);
    m->y = mem_alloc(m->n, sizeof *m->y);
    return m->x && m->y ? 0 : -1;
}

static void memory_close(struct memory *m)
{
    mem_free(m->x);
    mem_free(m->y);
    *m = (struct memory){0};
}

// As backward would.
static void memory_fill(struct memory *m)
{
    memset(m->x, 0, m->n * sizeof *m->x);
    memset(m->y, 0, m->n * sizeof *m->y);
}

static void memory_run(struct memory *m)
{
    float *restrict x = m->x, *restrict y = m->y;
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < m->n; i++) {
        float s = x[i] + y[i];
        x[i] = s;
        y[i] = s;
    }
}

static int memory_time(struct memory *m, struct cluster *cluster, int count,
                       double *seconds)
{
    *seconds = 0;
    for (int k = 0; k < count; k++) {
        memory_fill(m);
        if (cluster_barrier(cluster))
            return -1;
        uint64_t start = now_ns();
        memory_run(m);
        if (cluster_barrier(cluster)) // all workers load the memory at once
            return -1;
        *seconds += (double)(now_ns() - start) * 1e-9 / count;
    }
    return 0;
}

// ---- all backends at one size

static size_t bucket_elements(const struct sync_plan *p, size_t n)
{
    size_t asked = (size_t)(p->bucket_mb * 1048576 / sizeof(float));
    return asked ? asked : bucket_usual(n, 0);
}

static int open_all(const struct sync_plan *p, struct arena *a,
                    struct tested *e)
{
    struct cost warm = {0};
    for (int i = 0; i < p->nrows; i++) {
        const struct row *r = &p->rows[i];
        if (p->use[i] && (tested_open(&e[i], a, r->ops, r->carrier, r->backend,
                                      &p->asked[i]) ||
                          tested_run(&e[i], 2, &warm)))
            return -1;
    }
    return 0;
}

// The backends alternate, because a machine's speed drifts.
static int run_rounds(const struct sync_plan *p, struct tested *e,
                      struct memory *m, struct cell *cells,
                      double (*times)[PLAN_ROUNDS])
{
    size_t n = e->arena->n;
    int each = n <= 1 << 14 ? 50 : n <= 1 << 20 ? 6 : 2;
    for (int round = 0; round < p->rounds; round++) {
        for (int i = 0; i < p->nrows; i++) {
            struct cost *c = &cells[i].cost;
            double before = c->seconds;
            if (p->use[i] && tested_run(&e[i], each, c))
                return -1;
            times[i][round] = (c->seconds - before) / each;
        }
        if (memory_time(m, e->arena->cluster, each, &times[MEMORY][round]))
            return -1;
    }
    return 0;
}

// Takes each round's mean over workers. Stores the median of these means, and
// the range of their middle half.
static int middle(struct cluster *c, double *times, int rounds, double *seconds,
                  double *spread)
{
    if (cluster_sum(c, times, rounds))
        return -1;
    *seconds = median(times, rounds) / c->world;
    *spread = (times[rounds - 1 - rounds / 4] - times[rounds / 4]) / c->world;
    return 0;
}

static int gather(const struct sync_plan *p, struct tested *e, struct cell *c,
                  double *times)
{
    struct cluster *cluster = e->arena->cluster;
    struct cost unused = {0};
    double seconds, spread;
    if (tested_run(e, 1, &unused) ||
        middle(cluster, times, p->rounds, &seconds, &spread))
        return -1;
    double sums[] = {c->cost.cpu_s, c->cost.bytes_out, (double)e->wrong};
    if (cluster_sum(cluster, sums, 3))
        return -1;
    *c = (struct cell){.cost = {.seconds = seconds,
                                .cpu_s = sums[0],
                                .bytes_out = sums[1]},
                       .spread = spread,
                       .wrong = sums[2]};
    return 0;
}

static int measure(const struct sync_plan *p, struct cluster *cluster, size_t n,
                   struct cell *cells)
{
    static struct arena arena;
    static struct tested tested[PLAN_ROWS];
    struct memory memory = {0};
    double times[CELLS][PLAN_ROUNDS];
    memset(cells, 0, CELLS * sizeof *cells);
    memset(tested, 0, sizeof tested);
    for (int i = 0; i < p->nrows; i++)
        tested[i].arena = &arena;
    int rc = arena_open(&arena, cluster, n, bucket_elements(p, n), p->threads,
                        p->server_host) ||
                     memory_open(&memory, n) || open_all(p, &arena, tested) ||
                     run_rounds(p, tested, &memory, cells, times) ||
                     middle(cluster, times[MEMORY], p->rounds,
                            &cells[MEMORY].cost.seconds, &cells[MEMORY].spread)
                 ? -1
                 : 0;
    for (int i = 0; !rc && i < p->nrows; i++)
        if (p->use[i])
            rc = gather(p, &tested[i], &cells[i], times[i]);
    for (int i = 0; i < p->nrows; i++)
        if (tested_close(&tested[i], rc))
            rc = -1;
    memory_close(&memory);
    arena_close(&arena);
    return rc;
}

// ---- the table

// Prints a row's table, and adds the link fitted to its times to *fits.
static int print_row(const struct sync_plan *p, int row, int world,
                     const struct cell (*cells)[CELLS], struct links *fits)
{
    const char *name = p->rows[row].name;
    const char *wire = dtype_name(p->asked[row].wire);
    struct law law;
    const struct link_fit *given = NULL;
    struct link link = {0};
    double bytes[TABLE_SIZES], seconds[TABLE_SIZES];
    law = plan_law(p, row, world);
    if (p->links.n && !(given = links_find(&p->links, name)))
        return -1;
    for (int i = 0; i < p->nsizes; i++) {
        bytes[i] = (strcmp(wire, "fp32") ? 2 : 4) * (double)p->counts[i];
        seconds[i] = cells[i][row].cost.seconds;
    }
    int before = fits->n;
    if (links_add(fits, name, &law, bytes, seconds, p->nsizes))
        return -1;
    if (given || fits->n > before)
        link = given ? given->link : fits->fits[before].link;
    printf("\n# %s, %d workers: ", name, world);
    if (link.bytes_per_s > 0)
        printf("alpha %.1f us, %.4g GB/s each way (%s); %g messages, %g of "
               "the bytes\n",
               link.alpha_s * 1e6, link.bytes_per_s * 1e-9,
               given ? "given" : "fitted", law.hops, law.share);
    else
        printf("no link fits the times\n");
    printf("#%11s %11s %5s %11s %8s %8s %7s %11s %7s %9s %9s\n", "size(B)",
           "count", "type", "time(us)", "algbw", "busbw", "#wrong", "law(us)",
           "off(%)", "cpu_s/GB", "spread(%)");
    for (int i = 0; i < p->nsizes; i++) {
        const struct cell *c = &cells[i][row];
        double size = sizeof(float) * (double)p->counts[i];
        double algbw = size / c->cost.seconds * 1e-9;
        double t = law_seconds(&law, &link, bytes[i]);
        printf(" %11.0f %11zu %5s %11.1f %8.3f %8.3f %7.0f", size, p->counts[i],
               wire, c->cost.seconds * 1e6, algbw,
               algbw * 2 * (world - 1) / world, c->wrong);
        if (link.bytes_per_s > 0)
            printf(" %11.1f %7.1f", t * 1e6, 100 * (seconds[i] / t - 1));
        else
            printf(" %11s %7s", "-", "-");
        printf(" %9.3f %9.1f\n",
               c->cost.bytes_out > 0
                   ? c->cost.cpu_s / (c->cost.bytes_out * 1e-9)
                   : 0,
               100 * c->spread / c->cost.seconds);
    }
    return 0;
}

// Returns the fastest peer at one size, among the peers with `servers` servers;
// -1: none.
static int fastest_peer(const struct sync_plan *p, int servers,
                        const struct cell cells[CELLS])
{
    int best = -1;
    for (int i = 0; i < p->nrows; i++)
        if (p->use[i] && p->rows[i].peer &&
            p->rows[i].backend->servers == servers &&
            (best < 0 || cells[i].cost.seconds < cells[best].cost.seconds))
            best = i;
    return best;
}

// Prints how many times faster each of our backends is than its fastest peer,
// at each size.
static void print_ratios(const struct sync_plan *p,
                         const struct cell (*cells)[CELLS])
{
    bool peers = false;
    for (int i = 0; i < p->nrows; i++)
        peers |= p->use[i] && p->rows[i].peer;
    if (!peers)
        return;
    printf("\n# times faster than the fastest peer\n#%11s", "size(B)");
    for (int i = 0; i < p->nrows; i++)
        if (p->use[i] && !p->rows[i].peer)
            printf("  %s", p->rows[i].name);
    for (int k = 0; k < p->nsizes; k++) {
        printf("\n %11zu", p->counts[k] * sizeof(float));
        for (int i = 0; i < p->nrows; i++) {
            int best = fastest_peer(p, p->rows[i].backend->servers, cells[k]);
            if (!p->use[i] || p->rows[i].peer)
                continue;
            if (best < 0)
                printf("  -");
            else
                printf("  %.2f of %s",
                       cells[k][best].cost.seconds / cells[k][i].cost.seconds,
                       p->rows[best].name);
        }
    }
    printf("\n");
}

// Prints the rate at which ring-shm's all-reduce moves bytes, beside the rate
// of plain loops that move as many.
static void print_memory(const struct sync_plan *p, int world,
                         const struct cell (*cells)[CELLS])
{
    for (int i = 0; i < p->nrows; i++) {
        if (!p->use[i] || p->rows[i].carrier != &ring_shm)
            continue;
        printf("\n# %s: bytes read and written by all workers\n#%11s %8s %8s "
               "%9s\n",
               p->rows[i].name, "size(B)", "GB/s", "limit", "share(%)");
        for (int k = 0; k < p->nsizes; k++) {
            double size = sizeof(float) * (double)p->counts[k];
            if (size < 1 << 20)
                continue; // a barrier would be most of the limit's time
            double moved = 2 * world * size * 1e-9;
            double t = cells[k][i].cost.seconds;
            double least = cells[k][MEMORY].cost.seconds;
            printf(" %11.0f %8.2f %8.2f %9.0f\n", size, moved / t,
                   moved / least, 100 * least / t);
        }
    }
}

static int print(const struct sync_plan *p, int world,
                 const struct cell (*cells)[CELLS])
{
    static struct links fits;
    fits.workers = world;
    for (int i = 0; i < p->nrows; i++)
        if (p->use[i] && print_row(p, i, world, cells, &fits))
            return -1;
    print_ratios(p, cells);
    print_memory(p, world, cells);
    fflush(stdout);
    return *p->out ? links_write(&fits, p->out) : 0;
}

static int work(struct cluster *cluster, void *arg)
{
    struct sync_plan *p = arg;
    static struct cell cells[TABLE_SIZES][CELLS];
    omp_set_num_threads(p->threads);
    for (int i = 0; i < p->nrows; i++)
        if (table_leave_out(cluster, p->rows[i].name, p->rows[i].carrier,
                            &p->use[i]))
            return -1;
    for (int i = 0; i < p->nsizes; i++) {
        if (cluster->rank == 0)
            log_line("size %d of %d: %zu bytes", i + 1, p->nsizes,
                     p->counts[i] * sizeof(float));
        if (measure(p, cluster, p->counts[i], cells[i]))
            return -1;
    }
    double wrong = 0;
    for (int i = 0; i < p->nrows; i++)
        for (int k = 0; p->use[i] && k < p->nsizes; k++)
            wrong += cells[k][i].wrong;
    if (cluster->rank == 0 &&
        print(p, cluster->world, (const struct cell(*)[CELLS])cells))
        return -1;
    return wrong > 0 ? fail("%.0f results are wrong", wrong) : 0;
}

static void print_left_out(const struct sync_plan *p)
{
    printf("# ");
    for (int i = 0; i < p->nrows; i++)
        if (p->rows[i].mpi && !p->rows[i].peer)
            printf("%s, ", p->rows[i].name);
    printf("mpi.. are left out without mpirun; try: lockstep bench sync\n");
}

static void print_unread(const struct sync_plan *p)
{
    for (int i = 0; i < p->nrows; i++)
        if (p->unread[i])
            printf("# %s is left out: it does not read %s\n", p->rows[i].name,
                   p->unread[i]);
}

int main(int argc, char **argv)
{
    static struct sync_plan p;
    int rank, world;
    log_as_lockstep();
    streams_begin();
    log_for_launcher();
    setvbuf(stdout, NULL, _IOLBF, 0); // so that mpirun shows each line at once
    bool launched = cluster_launched(&rank, &world);
    bool checks = argc > 1 && !strcmp(argv[argc - 1], WORKERS_CHECK);
    int rc = plan_parse(&p, launched || checks, argc - 1 - checks, argv + 1);
    if (rc < 0 ||
        (!rc && *p.out && (!launched || rank == 0) && file_can_replace(p.out)))
        die("%s", fail_message());
    if (rc > 0 || checks)
        return 0;
    if (!launched && p.all)
        print_left_out(&p);
    if (p.all && (!launched || rank == 0))
        print_unread(&p);
    for (int i = 0; i < p.nrows; i++)
        if (p.use[i] && p.rows[i].peer && p.rows[i].mpi)
            openmpi_prepare(); // also affects our rows over MPI
    return workers_run(launched, p.workers, p.timeout_s, work, &p) ? 1 : 0;
}
