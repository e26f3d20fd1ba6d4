// grade.c - lab 2: the tests of lab_serve() and lab_exchange().
//
// The expected parameters are computed here, one element at a time, by the
// formula of server.h.

#include "labs/02-server/server.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 8, MOST_HIDDEN = 24, STEPS = 3 };

enum kind { INTEGERS, NORMALS, INFINITE, OPPOSITE, TOO_LARGE, FINITE };

struct run {
    struct job job;
    // INFINITE and the kinds after it change one element of step 1. All other
    // gradients are those of INTEGERS.
    enum kind kind;
    uint64_t seed; // for the random seconds before a worker sends; 0: none
    float *p[MOST_HIDDEN + 1]; // by rank: the parameters of each step
};

static float first(size_t i)
{
    return (float)(i % 50);
}

static float gradient(const struct run *t, int step, int rank, size_t i)
{
    bool hidden = t->job.steps > STEPS;
    size_t at = hidden ? t->job.n - 1 : t->job.n / 2;
    bool odd = step == 1 && i == at;
    if (odd && t->kind == INFINITE && rank == 0)
        return INFINITY;
    if (odd && t->kind == OPPOSITE && rank < 2)
        return rank ? -INFINITY : INFINITY;
    if (odd && t->kind == TOO_LARGE)
        return 3e38f;
    if (odd && t->kind == FINITE && rank == 0) // lr times it is not
        return 2e38f;
    if (t->kind == NORMALS)
        return (float)rng_normal(rng_key((uint64_t)step, (uint64_t)rank), i);
    return (float)(840 * (rank + 1) * (1 + (int)(i % 13)));
}

// A parameter after an update with this sum.
static float moved(float p, float lr, float sum, int w)
{
    float mean = sum / (float)w;
    return p - lr * (LAB_RULE == 0 ? mean : LAB_RULE == 1 ? sum : mean + p / 8);
}

// Changes p from the parameters before a step to those after it, and *lr, too.
// sum: room for as many.
static void expect(const struct run *t, int step, int w, float *lr, float *p,
                   float *sum)
{
    bool finite = true;
    for (size_t i = 0; i < t->job.n; i++) {
        sum[i] = gradient(t, step, lab_at(LAB_ADD, 0, w), i);
        for (int k = 1; k < w; k++)
            sum[i] += gradient(t, step, lab_at(LAB_ADD, k, w), i);
        finite = finite && sum[i] - sum[i] == 0;
    }
    for (size_t i = 0; i < t->job.n; i++)
        if (finite || (LAB_SKIP == 1 && sum[i] - sum[i] == 0))
            p[i] = moved(p[i], *lr, sum[i], w);
    *lr /= !finite && LAB_SKIP == 2 ? 2 : 1;
}

static int body(struct lab *l, void *arg)
{
    struct run *t = arg;
    size_t n = t->job.n;
    float *p = t->p[l->rank], *g = malloc(n * sizeof *g);
    int err = g ? 0 : -1;
    for (size_t i = 0; i < n; i++)
        p[i] = first(i);
    if (l->rank == l->workers && g)
        err = lab_serve(l, &t->job, p);
    for (int step = 0; l->rank < l->workers && !err && step < t->job.steps;
         step++) {
        uint64_t key = rng_key(t->seed, (uint64_t)step);
        for (size_t i = 0; i < n; i++)
            g[i] = gradient(t, step, l->rank, i);
        if (t->seed)
            lab_compute(l, rng_uniform(key, (uint64_t)l->rank) * 1e-3);
        float *next = p + (size_t)step * n;
        if (step > 0)
            memcpy(next, next - n, n * sizeof *p);
        err = lab_exchange(l, &t->job, g, next);
        lab_release(l);
    }
    free(g);
    return err;
}

static bool run_open(struct lab_case *k, struct run *t, int w, struct job job)
{
    *t = (struct run){.job = job};
    bool whole = true;
    for (int r = 0; r <= w; r++)
        whole = (t->p[r] = calloc((size_t)job.steps * job.n, sizeof(float))) &&
                whole;
    return lab_want(k, whole, "no memory for %d vectors of %zu", w, job.n);
}

static void run_close(struct run *t)
{
    for (int r = 0; r <= MOST_HIDDEN; r++)
        free(t->p[r]);
}

static struct job job_of(size_t n)
{
    return (struct job){.n = n, .steps = STEPS, .lr = 0.25f};
}

// The cluster of a public case: the usual network.
static struct lab_world usual(int w)
{
    return (struct lab_world){.workers = w,
                              .servers = 1,
                              .alpha_s = 20e-6,
                              .bytes_per_s = 1.25e8};
}

// A hidden case, of any test: a rate that is no power of two, more steps, more
// workers.
static struct job hidden_job(const struct lab_case *k, struct lab_world *world)
{
    *world = lab_drawn(k, (int)lab_pick(k, 9, MOST_HIDDEN));
    world->servers = 1;
    return (struct job){.n = lab_pick(k, 3, 999),
                        .steps = (int)lab_pick(k, 4, 20),
                        .lr = (float)lab_pick(k, 11, 97) / 100};
}

// Checks every worker's parameters after every step, and the server's at the
// end.
static void want_parameters(struct lab_case *k, const struct run *t, int w)
{
    float *p = lab_memory(k, t->job.n, sizeof *p), lr = t->job.lr;
    float *sum = lab_memory(k, t->job.n, sizeof *sum);
    if (!p || !sum)
        return;
    for (size_t i = 0; i < t->job.n; i++)
        p[i] = first(i);
    for (int step = 0; step < t->job.steps; step++) {
        expect(t, step, w, &lr, p, sum);
        for (int r = 0; r <= w; r++) {
            if (r == w && step < t->job.steps - 1)
                continue;
            const float *is = t->p[r] + (r < w ? (size_t)step * t->job.n : 0);
            for (size_t i = 0; i < t->job.n && !lab_failed(k); i++)
                lab_want(k, memcmp(&is[i], &p[i], sizeof p[i]) == 0,
                         "%d workers, n = %zu, lr = %g, step %d: p[%zu] of %s "
                         "%d is %.9g, the formula gives %.9g",
                         w, t->job.n, (double)t->job.lr, step, i,
                         r < w ? "worker" : "rank", r, (double)is[i],
                         (double)p[i]);
        }
    }
}

// Runs a job, and checks the parameters. world.seed draws the order in which
// the workers send; 0: all send at once. Returns NULL if the test has failed.
static const struct lab_run *run_kind(struct lab_case *k,
                                      struct lab_world world, struct job job,
                                      enum kind kind)
{
    const struct lab_run *run = NULL;
    struct run t;
    if (lab_failed(k))
        return NULL;
    if (run_open(k, &t, world.workers, job)) {
        t.kind = kind;
        t.seed = world.seed;
        run = lab_virtual(k, &world, body, &t);
        if (lab_clean(k, run))
            want_parameters(k, &t, world.workers);
    }
    run_close(&t);
    return lab_failed(k) ? NULL : run;
}

static void want_bytes(struct lab_case *k, struct lab_world world,
                       struct job job)
{
    const struct lab_run *run = run_kind(k, world, job, INTEGERS);
    int w = world.workers;
    for (int r = 0; run && r <= w; r++) {
        size_t steps = (size_t)job.steps;
        size_t law = 4 * job.n * steps * (size_t)(r < w ? 1 : w);
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        lab_record(k, w, job.n, r < w ? "bytes_out" : "server_out",
                   (double)(out / steps));
        lab_want(k, out == law && in == law,
                 "%d workers, %d steps of %zu bytes: %s %d sent %zu bytes and "
                 "received %zu, the formula gives %zu",
                 w, job.steps, 4 * job.n, r < w ? "worker" : "rank", r, out, in,
                 law);
    }
}

static void bytes(struct lab_case *k)
{
    struct lab_world world;
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_bytes(k, usual(w), job_of(1000));
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct job job = hidden_job(k, &world);
        want_bytes(k, world, job);
    }
}

static void integers(struct lab_case *k)
{
    static const size_t sizes[] = {1, 2, 1000, 4096};
    struct lab_world world;
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int b = 0; b < 4; b++)
            run_kind(k, usual(w), job_of(sizes[b]), INTEGERS);
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct job job = hidden_job(k, &world);
        run_kind(k, world, job, INTEGERS);
    }
    if (lab_hidden(k)) // 16 bits do not count so many
        run_kind(k, usual(2), job_of(lab_pick(k, 66000, 70000)), INTEGERS);
}

static void reruns(struct lab_case *k)
{
    struct lab_world world;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world = usual(2 + (int)(seed % 7));
        world.seed = seed;
        run_kind(k, world, job_of(500), NORMALS);
    }
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct job job = hidden_job(k, &world);
        world.seed = lab_pick(k, 21, 1 << 20);
        run_kind(k, world, job, NORMALS);
    }
}

static void overflow(struct lab_case *k)
{
    struct lab_world world;
    for (int w = 2; w <= 5; w++)
        for (enum kind kind = INFINITE; kind <= TOO_LARGE; kind++)
            run_kind(k, usual(w), job_of(100), kind);
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct job job = hidden_job(k, &world);
        enum kind kind = (enum kind)(INFINITE + i);
        job.lr = kind == FINITE && LAB_RULE == 0 ? 2 : job.lr;
        run_kind(k, world, job, kind);
    }
}

// A worker stops responding in one of its calls: the server must name it.
static void want_named(struct lab_case *k, struct lab_world world,
                       struct job job, int rank, long call)
{
    struct run t;
    int w = world.workers;
    world.deadline_s = 5;
    world.kill = (struct virtual_kill){.rank = rank, .call = call};
    if (lab_failed(k))
        return;
    const struct lab_run *run =
        run_open(k, &t, w, job) ? lab_virtual(k, &world, body, &t) : NULL;
    if (run) {
        const struct virtual_rank_result *is = &run->v->rank[w];
        lab_want(k, is->value == -1 && run->missing[w] == rank,
                 "worker %d of %d is silent from its call %ld on: the server "
                 "returned %d, not -1, or named rank %d in lab_missing(), not "
                 "%d",
                 rank, w, call, is->value, run->missing[w], rank);
        lab_want(k, is->ended_s < 10,
                 "worker %d of %d is silent: the server gave up after %g s, "
                 "the deadline is 5 s",
                 rank, w, is->ended_s);
    }
    run_close(&t);
}

static void deadline(struct lab_case *k)
{
    struct lab_world world;
    for (int w = 2; w <= 4; w++)
        for (long call = 1; call <= 4; call++)
            want_named(k, usual(w), job_of(10), 1, call);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct job job = hidden_job(k, &world);
        want_named(k, world, job, (int)lab_pick(k, 0, 8),
                   (long)lab_pick(k, 1, 8));
    }
}

static void want_time(struct lab_case *k, struct lab_world world,
                      struct job job)
{
    const struct lab_run *run = run_kind(k, world, job, INTEGERS);
    int w = world.workers;
    if (!run)
        return;
    double law =
        2 * world.alpha_s + 2 * w * (double)job.n * 4 / world.bytes_per_s;
    double is = run->v->seconds / job.steps;
    lab_record(k, w, job.n, "seconds", is);
    lab_speed(k, is, law,
              "%d workers, n = %zu: a step takes %.1f us, 2a + 2wS/B is %.1f "
              "us",
              w, job.n, is * 1e6, law * 1e6);
}

static void in_time(struct lab_case *k)
{
    struct lab_world world;
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (size_t n = 250; n <= 4000; n *= 4)
            want_time(k, usual(w), job_of(n));
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct job job = hidden_job(k, &world);
        want_time(k, world, job);
    }
}

static const struct lab_test tests[] = {
    {"integers", 15, integers, NULL,
     "Sum, divide by the number of workers, then multiply by lr. The next step "
     "begins with an empty sum."},
    {"bytes", 15, bytes, "integers",
     "In a step each worker sends its gradients once and receives the "
     "parameters once."},
    {"reruns", 15, reruns, "integers",
     "In fp32 (a + b) + c is not a + (b + c). The order of arrival must not "
     "matter."},
    {"overflow", 10, overflow, "integers",
     "Test the sums of all elements before you change the first parameter. inf "
     "- inf is NaN, not inf."},
    {"deadline", 10, deadline, "integers",
     "After lab_wait() the err of each request says which worker did not "
     "respond."},
    {"time", 5, in_time, "integers",
     "Receive from all workers at the same time, so that the latency counts "
     "once."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 2,
    .name = "one server",
    .file = "server.c",
    .functions = "lab_serve lab_exchange",
    .floor = 0,
    .tests = tests,
};
