// pair_perf.c - the cost of communication for two workers of one thread each.
//
//     mpirun -n 2 pair_perf [rounds=N] [steps=N]
//
// The workers run steps of model=micro at batch 8 in fp32, each on its own
// core. Rounds of the backends take turns on the same vectors. The first
// backend is the one for one worker: both run it at the same time, and send
// nothing. The others are those without servers, each on its best carrier; they
// send buckets while backward goes on. The bench prints medians of rounds, and
// the rate of workers that talk as a share of the rate of silent workers.

#include "base/base.h"
#include "base/median.h"
#include "bench/workers.h"
#include "bench/workload.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "train/ways.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 64, WAYS = 16, WORKERS = 2, BYTES = 256 };

static const double goal = 0.97;

struct pair_plan {
    int rounds, steps;
    const struct backend *ways[WAYS]; // the first is for one worker
    int n;
};

// Seconds of a step, from the moment at which both workers are ready.
static int run(struct workload *s, struct cluster *c, int steps,
               double *seconds)
{
    double compute, update;
    if (cluster_barrier(c))
        return -1;
    uint64_t start = now_ns();
    for (int i = 0; i < steps; i++)
        workload_step(s, &compute, &update);
    *seconds = (double)(now_ns() - start) * 1e-9 / steps;
    return 0;
}

static int run_rounds(const struct pair_plan *p, struct workload *s,
                      struct cluster *c, double times[WAYS][ROUNDS])
{
    struct sync *syncs[WAYS];
    struct sync_settings settings[WAYS];
    double warm;
    int rc = 0;
    for (int w = 0; w < p->n; w++) {
        const struct way *way = way_find(p->ways[w]);
        syncs[w] = w ? workload_sync(s, &settings[w], p->ways[w], way->strategy,
                                     way->carriers, c)
                     : s->local;
        rc |= syncs[w] ? 0 : -1;
    }
    for (int round = -1; !rc && round < p->rounds; round++)
        for (int w = 0; !rc && w < p->n; w++) {
            s->sync = syncs[w];
            rc = run(s, c, round < 0 ? 1 : p->steps,
                     round < 0 ? &warm : &times[w][round]);
        }
    for (int w = 1; w < p->n; w++)
        sync_close(&syncs[w]);
    return rc;
}

static void print(const struct pair_plan *p, double times[WAYS][ROUNDS])
{
    double least[WAYS], most[WAYS], middle[WAYS];
    for (int w = 0; w < p->n; w++) {
        least[w] = INFINITY, most[w] = 0;
        for (int r = 0; r < p->rounds; r++) {
            double share = times[0][r] / times[w][r];
            least[w] = fmin(least[w], share);
            most[w] = fmax(most[w], share);
        }
    }
    for (int w = 0; w < p->n; w++)
        middle[w] = median(times[w], p->rounds) / WORKERS;
    for (int w = 0; w < p->n; w++) {
        printf("w   fp32        1  two workers, %-9s %9.2f ms a step",
               p->ways[w]->name, middle[w] * 1e3);
        if (w)
            printf(", %.3f of %s's rate (goal %.2f; rounds %.3f to %.3f)",
                   middle[0] / middle[w], p->ways[0]->name, goal, least[w],
                   most[w]);
        printf("\n");
    }
}

static int work(struct cluster *c, void *arg)
{
    const struct pair_plan *p = arg;
    struct workload_case is = {.name = "w",
                               .batch = 8,
                               .precision = DTYPE_F32,
                               .threads = 1};
    struct workload s;
    static double times[WAYS][ROUNDS];
    if (model_preset("micro", &is.config))
        return -1;
    is.config.vocab = BYTES;
    is.tokens = is.config.context;
    int rc = workload_open(&s, &is) || run_rounds(p, &s, c, times) ? -1 : 0;
    for (int w = 0; !rc && w < p->n; w++)
        rc = cluster_sum(c, times[w], p->rounds);
    if (!rc && c->rank == 0)
        print(p, times);
    workload_close(&s);
    return rc;
}

int main(int argc, char **argv)
{
    struct pair_plan p = {.rounds = 7, .steps = 10};
    int rank = 0, world = 0;
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "rounds=", 7))
            p.rounds = atoi(argv[i] + 7);
        else if (!strncmp(argv[i], "steps=", 6))
            p.steps = atoi(argv[i] + 6);
        else
            die("%s: want rounds=N, steps=N; try: mpirun -n %d pair_perf",
                argv[i], WORKERS);
    if (p.rounds < 1 || p.rounds > ROUNDS || p.steps < 1)
        die("rounds=%d, steps=%d; try: 1 to %d rounds", p.rounds, p.steps,
            ROUNDS);
    if (!cluster_launched(&rank, &world) || world != WORKERS)
        die("pair_perf: %d workers; try: mpirun -n %d pair_perf", world,
            WORKERS);
    const struct backend *b;
    for (int i = 0; (b = backend_at(i)) && p.n < WAYS; i++)
        if (!b->servers && b->traffic != TRAFFIC_OWN)
            p.ways[p.n++] = b;
    workers_pin(rank, world);
    return workers_run(true, world, 60, work, &p) ? 1 : 0;
}
