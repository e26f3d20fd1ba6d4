// grade.c - lab 7: the tests of a server with a bound.
//
// Workers note the times of their pushes and of the answers. From these times
// the tests compute what the bound allows. A push counts from its beginning,
// also while it travels.

#include "labs/07-stale/stale.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { WORKERS = 4, STEPS = 12, MOST_N = 64, SEEDS = 12 };
enum { MOST_WORKERS = 6, MOST_STEPS = 40 };

// A message of 40 bytes takes less than this, even if it waits for others.
static const double slack_s = 3e-4;

struct run {
    struct job job;
    uint64_t seed; // 0: all compute for the same time
    bool early;    // some leave before others
    int workers;
    int steps[MOST_WORKERS]; // pushes until a worker leaves
    double pushed[MOST_WORKERS][MOST_STEPS];
    double answered[MOST_WORKERS][MOST_STEPS];
    double left[MOST_WORKERS];                     // when it leaves
    float after[MOST_WORKERS][MOST_STEPS][MOST_N]; // p in the answers
    float served[MOST_N];
};

static float first(size_t i)
{
    return (float)(10 * i);
}

static float gradient(int rank, int step, size_t i)
{
    return (float)((rank * 3 + step * 5 + (int)i) % 17 - 6);
}

static int work(struct lab *l, struct run *t)
{
    int r = l->rank;
    size_t n = t->job.n;
    float g[MOST_N], p[MOST_N];
    for (int step = 0; step < t->steps[r]; step++) {
        uint64_t key = rng_key(t->seed, (uint64_t)r);
        for (size_t i = 0; i < n; i++)
            g[i] = gradient(r, step, i);
        lab_compute(l, t->seed ? 1e-3 + 4e-3 * rng_uniform(key, (uint64_t)step)
                               : 2e-3);
        t->pushed[r][step] = lab_now(l);
        if (lab_exchange(l, &t->job, g, p))
            return -1;
        t->answered[r][step] = lab_now(l);
        memcpy(t->after[r][step], p, n * sizeof *p);
        lab_release(l);
    }
    if (t->early) // so that others wait when it leaves
        lab_compute(l, 1e-2);
    t->left[r] = lab_now(l);
    return lab_leave(l);
}

static int body(struct lab *l, void *arg)
{
    struct run *t = arg;
    if (l->rank < l->workers)
        return work(l, t);
    for (size_t i = 0; i < t->job.n; i++)
        t->served[i] = first(i);
    return lab_serve(l, &t->job, t->served);
}

// Whether all ranks have returned 0. The message about a deadlock names the
// bound.
static bool ends(struct lab_case *k, const struct lab_run *run,
                 const struct run *t)
{
    bool gave_up = false;
    for (int r = 0; run && r < run->v->ranks; r++)
        gave_up = gave_up || run->v->rank[r].value != 0;
    if (run && !gave_up && run->v->deadlock[0])
        return lab_want(k, false,
                        "bound %d, %d workers, worker 0 pushes %d "
                        "times%s: %s",
                        t->job.bound, t->workers, t->steps[0],
                        t->early ? ", worker r 2r times more" : "",
                        run->v->deadlock);
    return lab_clean(k, run);
}

// A job of `workers` workers that each push `steps` times; with `early` worker
// r leaves 2r steps later than worker 0.
struct shape {
    int workers, steps;
    size_t n;
    bool early;
};

static const struct shape usual = {WORKERS, STEPS, 10, false};
static const struct shape leaving = {WORKERS, 4, 10, true};

static struct shape hidden_shape(const struct lab_case *k, bool early)
{
    return (struct shape){.workers = (int)lab_pick(k, 1, MOST_WORKERS),
                          .steps = (int)lab_pick(k, 20, 28),
                          .n = lab_pick(k, 17, MOST_N),
                          .early = early};
}

// A run, or NULL if it failed.
static struct run *served(struct lab_case *k, struct shape shape, int bound,
                          uint64_t seed, const double *slow)
{
    struct lab_world world = {.workers = shape.workers,
                              .servers = 1,
                              .seed = seed,
                              .slow = slow};
    struct run *t = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof *t);
    if (!t)
        return NULL;
    t->job = (struct job){shape.n, bound, 0.25f};
    t->seed = seed;
    t->early = shape.early;
    t->workers = shape.workers;
    for (int r = 0; r < shape.workers; r++)
        t->steps[r] = shape.steps + (shape.early ? 2 * r : 0);
    const struct lab_run *run = lab_virtual(k, &world, body, t);
    return ends(k, run, t) ? t : NULL;
}

// By how many a push's part of the learning rate is divided.
static int divisor(int workers)
{
    return LAB_PUSH == 1 ? 1 : LAB_PUSH == 2 ? 2 * workers : workers;
}

// The value of p[i] after the first `pushes` pushes of every worker.
static double moved(const struct run *t, int pushes, size_t i)
{
    double x = (double)first(i);
    double rate = (LAB_PUSH == 3 ? 0.5 : 0.25) / divisor(t->workers);
    for (int r = 0; r < t->workers; r++)
        for (int s = 0; s < pushes && s < t->steps[r]; s++)
            x -= rate * (double)gradient(r, s, i);
    return x;
}

static void want_final(struct lab_case *k, struct shape shape)
{
    const struct run *t = served(k, shape, -1, 0, NULL);
    // A third of a push is rounded.
    int parts = divisor(shape.workers);
    double most = parts & (parts - 1) ? 1e-3 : 0;
    for (size_t i = 0; t && i < t->job.n; i++) {
        double ought = moved(t, shape.steps, i), is = (double)t->served[i];
        lab_want(k, fabs(is - ought) <= most,
                 "no bound, %d workers, n = %zu: after %d pushes each p[%zu] "
                 "of the server is %.9g, not %.9g",
                 shape.workers, shape.n, shape.steps, i, is, ought);
    }
}

static void final(struct lab_case *k)
{
    want_final(k, usual);
    for (int i = 0; i < 4 && lab_hidden(k); i++)
        want_final(k, hidden_shape(k, false));
}

// How many pushes worker r has begun at time `at`.
static int begun(const struct run *t, int r, double at)
{
    int n = 0;
    while (n < t->steps[r] && t->pushed[r][n] <= at)
        n++;
    return n;
}

static void want_spread(struct lab_case *k, struct shape shape, int bound,
                        uint64_t seed)
{
    const struct run *t = served(k, shape, bound, seed, NULL);
    for (int r = 0; t && r < t->workers; r++)
        for (int s = 0; s < shape.steps; s++)
            for (int o = 0; o < t->workers; o++) {
                double at = t->answered[r][s];
                lab_want(k, s + 1 - begun(t, o, at) <= bound,
                         "bound %d, %d workers: push %d of worker %d is "
                         "answered at %.2f ms, when worker %d has pushed %d "
                         "times",
                         bound, t->workers, s + 1, r, at * 1e3, o,
                         begun(t, o, at));
            }
}

static void spread(struct lab_case *k)
{
    for (int bound = 0; bound <= 3; bound++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            want_spread(k, usual, bound, seed);
    for (int i = 0; i < 6 && lab_hidden(k); i++)
        want_spread(k, hidden_shape(k, false), (int)lab_pick(k, 0, 7),
                    lab_pick(k, 100, 1 << 20));
}

static void want_bsp(struct lab_case *k, struct shape shape, uint64_t seed)
{
    const struct run *t = served(k, shape, 0, seed, NULL);
    for (int r = 0; t && r < t->workers; r++)
        for (int s = 0; s < shape.steps; s++)
            for (size_t i = 0; i < t->job.n; i++)
                lab_want(k, (double)t->after[r][s][i] == moved(t, s + 1, i),
                         "bound 0, push %d: worker %d of %d gets p[%zu] = "
                         "%.9g, after all %d pushes it is %.9g",
                         s + 1, r, t->workers, i, (double)t->after[r][s][i],
                         t->workers * (s + 1), moved(t, s + 1, i));
}

static void bsp(struct lab_case *k)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        want_bsp(k, usual, seed);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct shape shape = hidden_shape(k, false);
        shape.workers = 1 << shape.workers % 3; // so that sums are exact
        want_bsp(k, shape, lab_pick(k, 100, 1 << 20));
    }
}

// The time from which push s of worker r may be answered: at once, or after the
// others have pushed or left.
static double allowed(const struct run *t, int r, int s)
{
    double at = t->pushed[r][s];
    int need = s + 1 - t->job.bound;
    for (int o = 0; o < t->workers && t->job.bound >= 0; o++) {
        int last = t->steps[o] - 1;
        if (need > last + 1) // it has left before
            at = fmax(at, t->left[o]);
        else if (need > 0)
            at = fmax(at, t->pushed[o][need - 1]);
    }
    return at;
}

static void want_no_wait(struct lab_case *k, const struct run *t)
{
    for (int r = 0; t && r < t->workers; r++)
        for (int s = 0; s < t->steps[r]; s++)
            lab_want(k, t->answered[r][s] <= allowed(t, r, s) + slack_s,
                     "bound %d: worker %d sends push %d at %.2f ms and may go "
                     "on at %.2f ms; it is answered at %.2f ms",
                     t->job.bound, r, s + 1, t->pushed[r][s] * 1e3,
                     allowed(t, r, s) * 1e3, t->answered[r][s] * 1e3);
}

// Tries all bounds with a shape, and hidden shapes.
static void want_pace(struct lab_case *k, struct shape shape)
{
    for (int bound = -1; bound <= 3; bound++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            want_no_wait(k, served(k, shape, bound, seed, NULL));
    for (int i = 0; i < 6 && lab_hidden(k); i++)
        want_no_wait(k, served(k, hidden_shape(k, shape.early),
                               (int)lab_pick(k, 0, 7),
                               lab_pick(k, 100, 1 << 20), NULL));
}

static void waiters(struct lab_case *k)
{
    want_pace(k, usual);
}

static void leave(struct lab_case *k)
{
    want_pace(k, leaving);
}

// The earliest time at which all fast workers have their last answers. A step
// takes 2 ms, or 4 ms on worker 3, and the time of a push and its answer.
static double explained(int bound, double trip_s)
{
    double pushed[WORKERS][STEPS], last = 0;
    for (int s = 0; s < STEPS; s++)
        for (int r = 0; r < WORKERS; r++) {
            double begin = 0;
            for (int o = 0; o < WORKERS && s > 0; o++) {
                if (o == r)
                    begin = fmax(begin, pushed[r][s - 1]);
                else if (bound >= 0 && s > bound)
                    begin = fmax(begin, pushed[o][s - 1 - bound]);
            }
            pushed[r][s] =
                begin + (s > 0 ? trip_s : 0) + (r == 3 ? 4e-3 : 2e-3);
        }
    for (int r = 0; r < 3; r++) {
        double end = pushed[r][STEPS - 1];
        for (int o = 0; o < WORKERS && bound >= 0; o++)
            end = fmax(end, pushed[o][STEPS - 1 - bound]);
        last = fmax(last, end + trip_s);
    }
    return last;
}

static void pace(struct lab_case *k)
{
    static const double slow[WORKERS + 1] = {1, 1, 1, 2, 1};
    for (int bound = -1; bound <= 3; bound++) {
        const struct run *t = served(k, usual, bound, 0, slow);
        if (!t)
            return;
        double is = 0, ought = explained(bound, 2 * (20e-6 + 40 / 1.25e8));
        for (int r = 0; r < 3; r++)
            is = fmax(is, t->answered[r][STEPS - 1]);
        lab_record(k, WORKERS, 10, bound < 0 ? "seconds_without" : "seconds",
                   is);
        lab_speed(k, is, ought,
                  "bound %d, one worker at half speed: the others have made %d "
                  "pushes after %.2f ms, the bound allows it after %.2f ms",
                  bound, STEPS, is * 1e3, ought * 1e3);
    }
}

static const struct lab_test tests[] = {
    {"final", 10, final, NULL,
     "Every push moves p at once, also if its sender must wait. By how "
     "much?"},
    {"spread", 20, spread, "final",
     "Keep a clock for each worker. Which workers may go on after a push?"},
    {"bsp", 10, bsp, "spread",
     "A worker that had to wait gets the parameters at the time of its "
     "answer."},
    {"waiters", 15, waiters, "spread",
     "After every push check all workers that wait, not only its sender."},
    {"leave", 10, leave, "waiters",
     "When a worker leaves, the lowest clock may rise: check all workers that "
     "wait."},
    {"pace", 5, pace, "waiters",
     "Answer every worker that may go on before you wait for the next "
     "push."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 7,
    .name = "do not wait for everybody",
    .file = "stale.c",
    .functions = "lab_serve lab_exchange lab_leave",
    .floor = 10,
    .tests = tests,
};
