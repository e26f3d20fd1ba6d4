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

enum kind { INTEGERS, NORMALS, INFINITE, OPPOSITE, TOO_LARGE };

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
    bool odd = step == 1 && i == t->job.n / 2;
    if (odd && t->kind == INFINITE && rank == 0)
        return INFINITY;
    if (odd && t->kind == OPPOSITE && rank < 2)
        return rank ? -INFINITY : INFINITY;
    if (odd && t->kind == TOO_LARGE)
        return 3e38f;
    if (t->kind == NORMALS)
        return (float)rng_normal(rng_key((uint64_t)step, (uint64_t)rank), i);
    return (float)(840 * (rank + 1) * (1 + (int)(i % 13)));
}

// Changes p from the parameters before a step to those after it.
static void expect(const struct run *t, int step, int w, float *p)
{
    bool finite = true;
    float sum[4096];
    for (size_t i = 0; i < t->job.n; i++) {
        sum[i] = gradient(t, step, lab_at(LAB_ADD, 0, w), i);
        for (int k = 1; k < w; k++)
            sum[i] += gradient(t, step, lab_at(LAB_ADD, k, w), i);
        finite = finite && sum[i] - sum[i] == 0;
    }
    for (size_t i = 0; finite && i < t->job.n; i++)
        p[i] = p[i] - t->job.lr * (sum[i] / (float)w);
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

// A rate that is no power of two, more steps, more workers.
static struct job hidden_job(const struct lab_case *k, int *w)
{
    *w = (int)lab_pick(k, 9, MOST_HIDDEN);
    return (struct job){.n = lab_pick(k, 3, 999),
                        .steps = (int)lab_pick(k, 4, 9),
                        .lr = (float)lab_pick(k, 11, 97) / 100};
}

// Checks every worker's parameters after every step, and the server's at the
// end.
static void want_parameters(struct lab_case *k, const struct run *t, int w)
{
    float p[4096];
    for (size_t i = 0; i < t->job.n; i++)
        p[i] = first(i);
    for (int step = 0; step < t->job.steps; step++) {
        expect(t, step, w, p);
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

static void run_kind(struct lab_case *k, int w, struct job job, enum kind kind,
                     uint64_t seed)
{
    struct lab_world world = {.workers = w, .servers = 1, .seed = seed};
    struct run t;
    if (lab_failed(k))
        return;
    if (run_open(k, &t, w, job)) {
        t.kind = kind;
        t.seed = seed;
        if (lab_clean(k, lab_virtual(k, &world, body, &t)))
            want_parameters(k, &t, w);
    }
    run_close(&t);
}

static void want_bytes(struct lab_case *k, int w, struct job job)
{
    struct lab_world world = {.workers = w, .servers = 1};
    struct run t;
    const struct lab_run *run =
        run_open(k, &t, w, job) ? lab_virtual(k, &world, body, &t) : NULL;
    bool clean = lab_clean(k, run);
    for (int r = 0; clean && r <= w; r++) {
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
    run_close(&t);
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS && !lab_failed(k); w++)
        want_bytes(k, w, job_of(1000));
    for (int i = 0; i < 3 && lab_hidden(k) && !lab_failed(k); i++) {
        int w;
        struct job job = hidden_job(k, &w);
        want_bytes(k, w, job);
    }
}

static void integers(struct lab_case *k)
{
    static const size_t sizes[] = {1, 2, 1000, 4096};
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int b = 0; b < 4; b++)
            run_kind(k, w, job_of(sizes[b]), INTEGERS, 0);
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        int w;
        struct job job = hidden_job(k, &w);
        run_kind(k, w, job, INTEGERS, 0);
    }
}

static void reruns(struct lab_case *k)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_kind(k, 2 + (int)(seed % 7), job_of(500), NORMALS, seed);
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        int w;
        struct job job = hidden_job(k, &w);
        run_kind(k, w, job, NORMALS, lab_pick(k, 21, 1 << 20));
    }
}

static void overflow(struct lab_case *k)
{
    for (int w = 2; w <= 5; w++)
        for (enum kind kind = INFINITE; kind <= TOO_LARGE; kind++)
            run_kind(k, w, job_of(100), kind, 0);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        int w;
        struct job job = hidden_job(k, &w);
        run_kind(k, w, job, (enum kind)(INFINITE + i), 0);
    }
}

// Worker 1 stops responding in one of its calls: the server must name it.
static void deadline(struct lab_case *k)
{
    for (int w = 2; w <= 4; w++)
        for (long call = 1; call <= 4 && !lab_failed(k); call++) {
            struct lab_world world = {.workers = w,
                                      .servers = 1,
                                      .deadline_s = 5,
                                      .kill = {.rank = 1, .call = call}};
            struct run t;
            const struct lab_run *run = run_open(k, &t, w, job_of(10))
                                            ? lab_virtual(k, &world, body, &t)
                                            : NULL;
            if (run) {
                const struct virtual_rank_result *is = &run->v->rank[w];
                lab_want(k, is->value == -1 && run->missing[w] == 1,
                         "worker 1 of %d is silent from its call %ld on: the "
                         "server returned %d, not -1, or named rank %d in "
                         "lab_missing(), not 1",
                         w, call, is->value, run->missing[w]);
                lab_want(k, is->ended_s < 10,
                         "worker 1 of %d is silent: the server gave up after "
                         "%g s, the deadline is 5 s",
                         w, is->ended_s);
            }
            run_close(&t);
        }
}

static void want_time(struct lab_case *k, int w, struct job job, double a,
                      double b)
{
    struct lab_world world = {.workers = w,
                              .servers = 1,
                              .alpha_s = a,
                              .bytes_per_s = b};
    struct run t;
    const struct lab_run *run =
        run_open(k, &t, w, job) ? lab_virtual(k, &world, body, &t) : NULL;
    if (lab_clean(k, run)) {
        double law = 2 * a + 2 * w * (double)job.n * 4 / b;
        double is = run->v->seconds / job.steps;
        lab_record(k, w, job.n, "seconds", is);
        lab_speed(k, is, law,
                  "%d workers, n = %zu: a step takes %.1f us, 2a + 2wS/B is "
                  "%.1f us",
                  w, job.n, is * 1e6, law * 1e6);
    }
    run_close(&t);
}

static void in_time(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS && !lab_failed(k); w++)
        for (size_t n = 250; n <= 4000; n *= 4)
            want_time(k, w, job_of(n), 20e-6, 1.25e8);
    for (int i = 0; i < 3 && lab_hidden(k) && !lab_failed(k); i++) {
        int w;
        struct job job = hidden_job(k, &w);
        want_time(k, w, job, 1e-6 * (double)lab_pick(k, 1, 500),
                  1e6 * (double)lab_pick(k, 10, 9000));
    }
}

static const struct lab_test tests[] = {
    {"bytes", 15, bytes, NULL,
     "In a step each worker sends its gradients once and receives the "
     "parameters once."},
    {"integers", 15, integers, NULL,
     "Sum, divide by the number of workers, then multiply by lr. The next step "
     "begins with an empty sum."},
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
    .floor = 15,
    .tests = tests,
};
