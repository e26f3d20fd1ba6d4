// collect_perf.c - times each collective operation (verb) by carrier and size,
// and compares it with Open MPI's own call.
//
//     lockstep bench collect workers=4             all rows, under mpirun
//     mpirun -n 4 collect_perf op=broadcast        one verb, without lockstep
//     collect_perf workers=4 rows=ring-tcp         rows without MPI
//
// A row is a verb of group.h over one carrier: our ring (ring-tcp, ring-shm) or
// MPI's non-blocking collectives (library). The row openmpi is MPI's own
// blocking call, with the algorithm that Open MPI chooses. linear, tree and
// chain are textbook algorithms (textbook/schedule.h) that use a carrier's
// sends and receives. NCCL's carriers (ring-nccl, library-nccl) need GPUs and
// are left out.
//
// Each verb has a table with the columns of nccl-tests: the vector's size in
// bytes; its count of elements, or one member's count if each member has a
// part; the time; algbw = size/time; busbw = algbw times the factor in the
// table's head; and the number of wrong results. Two columns are added: the
// bytes that the busiest member sent, and "law". The law is our formula for
// these bytes: the column is ok if every member sent exactly these bytes, else
// it has the largest difference. For libraries both columns are empty, because
// libraries do not report what they send.
//
// All members begin a call at the same moment. Its time ends when the last
// member is done. The table has the median of all calls. At each size the rows
// alternate, round by round, on the same vectors.

#include "bench/collect_plan.h"
#include "bench/collective.h"
#include "bench/openmpi.h"
#include "bench/workers.h"

#include "base/base.h"
#include "base/median.h"
#include "cluster/cluster.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { CALLS = 20 }; // the most calls in a round

struct cell { // one row at one size, all members together
    double seconds;
    double wrong, sent, off; // off: the largest sent - law of all members
    bool counted;            // sent and off are known
};

// ---- one verb at one size

static int calls_of(size_t n)
{
    return n <= 1 << 14 ? CALLS : n <= 1 << 20 ? 5 : 2;
}

// A round of one row: the time of each call, until the last member is done.
static int run_round(struct collective *c, int row, enum collect_verb verb,
                     size_t n, double *times)
{
    int calls = calls_of(n), world = c->cluster->world;
    double mine[CALLS], all[WORKERS_MOST * CALLS];
    for (int k = 0; k < calls; k++)
        if (collective_time(c, row, verb, n, &mine[k]))
            return -1;
    size_t bytes = (size_t)calls * sizeof *mine;
    if (cluster_allgather(c->cluster, mine, all, bytes))
        return -1;
    for (int k = 0; k < calls; k++) {
        times[k] = 0;
        for (int r = 0; r < world; r++)
            times[k] = fmax(times[k], all[r * calls + k]);
    }
    return 0;
}

static int gather(struct collective *c, int row, enum collect_verb verb,
                  size_t n, struct cell *cell)
{
    struct collect_check mine, all[WORKERS_MOST];
    if (collective_check(c, row, verb, n, &mine) ||
        cluster_allgather(c->cluster, &mine, all, sizeof mine))
        return -1;
    cell->counted = mine.law >= 0;
    for (int r = 0; r < c->cluster->world; r++) {
        double off = all[r].sent - all[r].law;
        cell->wrong += all[r].wrong;
        cell->sent = fmax(cell->sent, all[r].sent);
        if (fabs(off) > fabs(cell->off))
            cell->off = off;
    }
    return 0;
}

static int measure(struct collective *c, enum collect_verb verb, size_t n,
                   struct cell cells[COLLECT_ROWS])
{
    static double times[COLLECT_ROWS][COLLECT_ROUNDS * CALLS];
    const struct collect_plan *p = c->plan;
    int calls = calls_of(n);
    double warm[CALLS];
    for (int round = -1; round < p->rounds; round++)
        for (int i = 0; i < COLLECT_ROWS; i++) {
            double *to = round < 0 ? warm : &times[i][round * calls];
            if (p->use[i] && collect_has(i, verb) &&
                run_round(c, i, verb, n, to))
                return -1;
        }
    for (int i = 0; i < COLLECT_ROWS; i++) {
        cells[i] = (struct cell){0};
        if (!p->use[i] || !collect_has(i, verb))
            continue;
        if (gather(c, i, verb, n, &cells[i]))
            return -1;
        cells[i].seconds = median(times[i], p->rounds * calls);
    }
    return 0;
}

// ---- the table

static void print_head(enum collect_verb verb, int world)
{
    static const char *const formulas[] = {
        [COLLECT_WHOLE] = "algbw",
        [COLLECT_PARTS] = "algbw x (n-1)/n",
        [COLLECT_TWICE] = "algbw x 2(n-1)/n",
    };
    printf("\n# %s, %d workers: busbw = %s\n#%11s %11s %11s %8s %8s %7s %11s "
           "%9s  %s\n",
           collect_verb_names[verb], world, formulas[collect_facts[verb].bus],
           "size(B)", "count", "time(us)", "algbw", "busbw", "#wrong",
           "sent(B)", "law", "row");
}

static void print_row(const struct cell *c, enum collect_verb verb, size_t n,
                      int world, const char *name)
{
    double size = sizeof(float) * (double)n;
    double algbw = size / c->seconds * 1e-9;
    char sent[32] = "-", law[32] = "-";
    if (c->counted) {
        snprintf(sent, sizeof sent, "%.0f", c->sent);
        snprintf(law, sizeof law, c->off != 0 ? "%+.0f" : "ok", c->off);
    }
    printf(" %11.0f %11zu %11.1f %8.3f %8.3f %7.0f %11s %9s  %s\n", size,
           collect_count(verb, n, world), c->seconds * 1e6, algbw,
           algbw * collect_factor(verb, world), c->wrong, sent, law, name);
}

// Measures one verb at all sizes. Adds to *bad the number of wrong results and
// the number of rows that did not send the bytes of the law.
static int table(struct collective *c, enum collect_verb verb, double *bad)
{
    const struct collect_plan *p = c->plan;
    int world = c->cluster->world;
    bool prints = c->cluster->rank == 0;
    if (prints)
        print_head(verb, world);
    for (int k = 0; k < p->nsizes; k++) {
        struct cell cells[COLLECT_ROWS];
        size_t n = collect_elements(verb, p->counts[k], world);
        if (measure(c, verb, n, cells))
            return -1;
        for (int i = 0; i < COLLECT_ROWS; i++) {
            if (!p->use[i] || !collect_has(i, verb))
                continue;
            *bad += cells[i].wrong + (cells[i].off != 0);
            if (prints)
                print_row(&cells[i], verb, n, world, collect_rows[i].name);
        }
    }
    return 0;
}

// ---- the workers

static int work(struct cluster *cluster, void *arg)
{
    struct collect_plan *p = arg;
    struct collective c;
    double bad = 0;
    size_t most = collect_elements(COLLECT_ALL_REDUCE, p->counts[p->nsizes - 1],
                                   cluster->world);
    omp_set_num_threads(p->threads);
    if (cluster->world < 2 || cluster->world > WORKERS_MOST)
        return fail("bench collect: workers=%d; try: 2 .. %d", cluster->world,
                    WORKERS_MOST);
    for (int i = 0; i < COLLECT_ROWS; i++)
        if (table_leave_out(cluster, collect_rows[i].name,
                            collect_rows[i].carrier, &p->use[i]))
            return -1;
    int rc = collective_open(&c, p, cluster, most);
    for (int v = 0; !rc && v < COLLECT_VERBS; v++)
        if (p->verbs[v])
            rc = table(&c, (enum collect_verb)v, &bad);
    collective_close(&c);
    if (!rc && bad > 0)
        rc = fail("%.0f results or byte counts are wrong", bad);
    return rc;
}

int main(int argc, char **argv)
{
    static struct collect_plan p;
    int rank, world;
    log_as_lockstep();
    streams_begin();
    log_for_launcher();
    setvbuf(stdout, NULL, _IOLBF, 0); // so that mpirun shows each line at once
    bool launched = cluster_launched(&rank, &world);
    bool checks = argc > 1 && !strcmp(argv[argc - 1], WORKERS_CHECK);
    int rc = collect_parse(&p, launched || checks, argc - 1 - checks, argv + 1);
    if (rc < 0)
        die("%s", fail_message());
    if (rc > 0 || checks)
        return 0;
    if (!launched && !strcmp(p.rows_text, "all"))
        printf("# library, openmpi and ..-mpi are left out without mpirun; "
               "try: lockstep bench collect\n");
    if (!launched || rank == 0)
        printf("# ring-nccl, library-nccl are left out: they need GPUs\n");
    openmpi_prepare();
    return workers_run(launched, p.workers, p.timeout_s, work, &p) ? 1 : 0;
}
