// pair_perf.c - the cost of communication for two workers of one thread each.
//
//     mpirun -n 2 pair_perf [rounds=N] [steps=N]
//
// The workers run steps of model=micro at batch 8 in fp32, each on its own
// core. Rounds of the backends alternate on the same vectors. The first backend
// is `local`: both workers run it at the same time and send nothing. The others
// are all backends without servers, except sync=lab, each over its first
// carrier that can run. They send buckets while backward computes. The bench
// prints medians of rounds, and the rate of each backend as a share of local's
// rate.
//
// Workers that synchronize in every step wait for the slower worker in every
// step, even if communication costs nothing. So the bench also prints a lower
// bound: the mean over the steps of `local` of the slower worker's time. And it
// splits each step: compute and update are processor time of this thread; the
// rest is waiting, communication and the time of other programs.

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

enum { ROUNDS = 64, STEPS = 64, WAYS = 16, WORKERS = 2, BYTES = 256 };

static const double goal = 0.97;

struct pair_plan {
    int rounds, steps;
    const struct backend *ways[WAYS]; // the first is local
    int n;
};

// Mean seconds of a step in a round.
struct parts {
    double step, compute, update;
};

struct times {
    struct parts of[WAYS][ROUNDS]; // of this worker; in the end, of both
    double silent[WORKERS][ROUNDS][STEPS]; // seconds of each step of `local`
};

// Runs `steps` steps after a barrier. `each`, if not NULL, gets the seconds of
// every step.
static int run(struct workload *s, struct cluster *c, int steps,
               struct parts *mean, double *each)
{
    *mean = (struct parts){0};
    if (cluster_barrier(c))
        return -1;
    for (int i = 0; i < steps; i++) {
        uint64_t start = now_ns();
        struct workload_seconds took = workload_step(s);
        double step = (double)(now_ns() - start) * 1e-9;
        mean->step += step / steps;
        mean->compute += took.compute / steps;
        mean->update += took.update / steps;
        if (each)
            each[i] = step;
    }
    return 0;
}

static int run_rounds(const struct pair_plan *p, struct workload *s,
                      struct cluster *c, struct times *t)
{
    struct sync *syncs[WAYS];
    struct sync_settings settings[WAYS];
    struct parts warm;
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
            if (round < 0)
                rc = run(s, c, 1, &warm, NULL);
            else
                rc = run(s, c, p->steps, &t->of[w][round],
                         w ? NULL : t->silent[c->rank][round]);
        }
    for (int w = 1; w < p->n; w++)
        sync_close(&syncs[w]);
    return rc;
}

// Takes each round's mean over both workers. Returns the median of these means
// over the rounds of one backend, in ms.
static struct parts middle(const struct parts *sums, int rounds)
{
    double step[ROUNDS], compute[ROUNDS], update[ROUNDS];
    for (int r = 0; r < rounds; r++) {
        step[r] = sums[r].step / WORKERS * 1e3;
        compute[r] = sums[r].compute / WORKERS * 1e3;
        update[r] = sums[r].update / WORKERS * 1e3;
    }
    return (struct parts){median(step, rounds), median(compute, rounds),
                          median(update, rounds)};
}

// Takes each round's mean of the slower worker's time of a step. Returns the
// median of these means, in ms.
static double slower(const struct pair_plan *p, const struct times *t)
{
    double round[ROUNDS];
    for (int r = 0; r < p->rounds; r++) {
        round[r] = 0;
        for (int i = 0; i < p->steps; i++)
            round[r] +=
                fmax(t->silent[0][r][i], t->silent[1][r][i]) / p->steps * 1e3;
    }
    return median(round, p->rounds);
}

static void print(const struct pair_plan *p, const struct times *t)
{
    const char *silent = p->ways[0]->name;
    struct parts local = middle(t->of[0], p->rounds);
    for (int w = 0; w < p->n; w++) {
        struct parts way = middle(t->of[w], p->rounds);
        printf("w   fp32        1  two workers, %-12s %7.2f ms a step: compute "
               "%.2f, update %.2f, rest %.2f",
               p->ways[w]->name, way.step, way.compute, way.update,
               way.step - way.compute - way.update);
        if (w == 0) {
            double bound = slower(p, t);
            printf("\nw   fp32        1  two workers, the slower one %7.2f ms "
                   "a step: %.3f of %s's rate, the most that a way below can "
                   "reach\n",
                   bound, local.step / bound, silent);
            continue;
        }
        double least = INFINITY, most = 0;
        for (int r = 0; r < p->rounds; r++) {
            double share = t->of[0][r].step / t->of[w][r].step;
            least = fmin(least, share);
            most = fmax(most, share);
        }
        printf("; %.3f of %s's rate (goal %.2f; rounds %.3f to %.3f)\n",
               local.step / way.step, silent, goal, least, most);
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
    static struct times t;
    if (model_preset("micro", &is.config))
        return -1;
    is.config.vocab = BYTES;
    is.tokens = is.config.context;
    int rc = workload_open(&s, &is) || run_rounds(p, &s, c, &t) ? -1 : 0;
    if (!rc)
        rc = cluster_sum(c, (double *)&t, sizeof t / sizeof(double));
    if (!rc && c->rank == 0)
        print(p, &t);
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
            die("%s: not rounds=N or steps=N; try: mpirun -n %d pair_perf",
                argv[i], WORKERS);
    if (p.rounds < 1 || p.rounds > ROUNDS || p.steps < 1 || p.steps > STEPS)
        die("rounds=%d, steps=%d; try: 1 to %d rounds of 1 to %d steps",
            p.rounds, p.steps, ROUNDS, STEPS);
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
