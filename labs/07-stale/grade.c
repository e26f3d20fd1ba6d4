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
enum { MOST_WORKERS = 12, MOST_STEPS = 320 };

struct run {
    struct job job;
    double slack_s; // a push and its answer take less, even if they wait
    uint64_t seed;  // 0: all compute for the same time
    bool early;     // some leave before others
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

// The first elements count the pushes of each worker.
static float gradient(const struct run *t, int rank, int step, size_t i)
{
    if (i < (size_t)t->workers)
        return i == (size_t)rank;
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
            g[i] = gradient(t, r, step, i);
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
// r leaves 2r steps later than worker 0. The last worker computes `slow` times
// as long as the others.
struct shape {
    int workers, steps;
    size_t n;
    bool early;
    double slow, alpha_s, bytes_per_s;
};

static const struct shape usual = {WORKERS, STEPS, 10, false, 1, 20e-6, 1.25e8};
static const struct shape leaving = {WORKERS, 4, 10, true, 1, 20e-6, 1.25e8};

// Hidden case number i of a test. Six of them have 1 to 6 workers, the others
// more. A message takes little time beside a step's computing.
static struct shape hidden_shape(const struct lab_case *k, int i, bool early)
{
    return (struct shape){.workers = i < 6 ? i + 1 : (int)lab_pick(k, 9, 12),
                          .steps = (int)lab_pick(k, 20, 28),
                          .n = lab_pick(k, 17, MOST_N),
                          .early = early,
                          .slow = (double)lab_pick(k, 1, 9),
                          .alpha_s = 1e-6 * (double)lab_pick(k, 1, 8),
                          .bytes_per_s = 1e6 * (double)lab_pick(k, 100, 9000)};
}

// A run, or NULL if it failed.
static struct run *served(struct lab_case *k, struct shape shape, int bound,
                          uint64_t seed)
{
    double slow[MOST_WORKERS + 1];
    struct lab_world world = {.workers = shape.workers,
                              .servers = 1,
                              .alpha_s = shape.alpha_s,
                              .bytes_per_s = shape.bytes_per_s,
                              .seed = seed,
                              .slow = slow};
    struct run *t = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof *t);
    if (!t)
        return NULL;
    for (int r = 0; r <= MOST_WORKERS; r++)
        slow[r] = r == shape.workers - 1 ? shape.slow : 1;
    t->job = (struct job){shape.n, bound, 0.25f};
    t->slack_s =
        1e-4 + 2 * (shape.workers + 1) *
                   (shape.alpha_s + 4. * (double)shape.n / shape.bytes_per_s);
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

static double rate_of(int workers)
{
    return (LAB_PUSH == 3 ? 0.5 : 0.25) / divisor(workers);
}

// The value of p[i] after the first `pushes` pushes of every worker.
static double moved(const struct run *t, int pushes, size_t i)
{
    double x = (double)first(i), rate = rate_of(t->workers);
    for (int r = 0; r < t->workers; r++)
        for (int s = 0; s < pushes && s < t->steps[r]; s++)
            x -= rate * (double)gradient(t, r, s, i);
    return x;
}

static void want_final(struct lab_case *k, struct shape shape)
{
    const struct run *t = served(k, shape, -1, 0);
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
    for (int i = 0; i < 7 && lab_hidden(k); i++)
        want_final(k, hidden_shape(k, i, false));
}

// How many pushes a worker may be ahead of the slowest one.
static int ahead(int bound)
{
    return bound * (LAB_AHEAD + 1);
}

// How many pushes worker r has begun at time `at`.
static int begun(const struct run *t, int r, double at)
{
    int n = 0;
    while (n < t->steps[r] && t->pushed[r][n] <= at)
        n++;
    return n;
}

// More pushes than a byte counts.
static struct shape many_pushes(double slow)
{
    struct shape shape = usual;
    shape.workers = 2;
    shape.steps = 300;
    shape.slow = slow;
    return shape;
}

static void want_spread(struct lab_case *k, struct shape shape, int bound,
                        uint64_t seed)
{
    const struct run *t = served(k, shape, bound, seed);
    for (int r = 0; t && r < t->workers; r++)
        for (int s = 0; s < shape.steps; s++)
            for (int o = 0; o < t->workers; o++) {
                double at = t->answered[r][s];
                lab_want(k, s + 1 - begun(t, o, at) <= ahead(bound),
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
    for (int i = 0; i < 7 && lab_hidden(k); i++)
        want_spread(k, hidden_shape(k, i, false), (int)lab_pick(k, 0, 19),
                    lab_pick(k, 100, 1 << 20));
    if (lab_hidden(k))
        want_spread(k, many_pushes(1), 3, 1);
}

// How many pushes of worker o are in an answer, by the element that counts.
static int counted(const struct run *t, const float *answer, int o)
{
    double moves =
        ((double)first((size_t)o) - (double)answer[o]) / rate_of(t->workers);
    return (int)(moves + 0.5);
}

// An answer holds all pushes of its worker, those that others had answers for
// when this worker pushed, and none that had not begun.
static void want_answers(struct lab_case *k, struct shape shape, int bound,
                         uint64_t seed)
{
    const struct run *t = served(k, shape, bound, seed);
    for (int r = 0; t && r < t->workers; r++)
        for (int s = 0; s < shape.steps; s++)
            for (int o = 0; o < t->workers; o++) {
                int is = counted(t, t->after[r][s], o), least = 0;
                int most = begun(t, o, t->answered[r][s]);
                while (least < most && t->answered[o][least] <= t->pushed[r][s])
                    least++;
                least = o == r ? s + 1 : least;
                lab_want(k, is >= least && is <= most,
                         "bound %d, %d workers: the answer to push %d of "
                         "worker %d has %d pushes of worker %d, not %d to %d",
                         bound, t->workers, s + 1, r, is, o, least, most);
            }
}

static void want_bsp(struct lab_case *k, struct shape shape, uint64_t seed)
{
    const struct run *t = served(k, shape, 0, seed);
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
    for (int bound = -1; bound <= 3; bound += 2)
        want_answers(k, usual, bound, 1);
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct shape shape = hidden_shape(k, i, false);
        shape.workers = 1 << i; // so that sums are exact
        want_bsp(k, shape, lab_pick(k, 100, 1 << 20));
    }
    if (lab_hidden(k))
        want_bsp(k, many_pushes(1), 1);
    for (int i = 3; i < 7 && lab_hidden(k); i++)
        want_answers(k, hidden_shape(k, i, false), (int)lab_pick(k, 0, 9),
                     lab_pick(k, 100, 1 << 20));
}

// The time from which push s of worker r may be answered: at once, or after the
// others have pushed or left.
static double allowed(const struct run *t, int r, int s)
{
    double at = t->pushed[r][s];
    int need = s + 1 - ahead(t->job.bound);
    for (int o = 0; o < t->workers && t->job.bound >= 0; o++) {
        int last = t->steps[o] - 1;
        if (need > last + 1) // it has left before
            at = fmax(at, t->left[o]);
        else if (need > 0)
            at = fmax(at, t->pushed[o][need - 1]);
    }
    return at;
}

// Whether the term wants push s of worker r to be answered before push u of
// worker o, if both may be answered from the same time on.
static bool comes_first(const struct run *t, int r, int s, int o, int u)
{
    return LAB_ANSWER == 1   ? r > o
           : LAB_ANSWER == 2 ? t->pushed[r][s] < t->pushed[o][u]
                             : false;
}

static void want_turns(struct lab_case *k, const struct run *t, int r, int s)
{
    for (int o = 0; o < t->workers && LAB_ANSWER; o++)
        for (int u = 0; u < t->steps[o]; u++)
            lab_want(k,
                     allowed(t, r, s) != allowed(t, o, u) ||
                         !comes_first(t, r, s, o, u) ||
                         t->answered[r][s] < t->answered[o][u],
                     "bound %d: worker %d's push of %.2f ms and worker %d's "
                     "of %.2f ms may be answered at %.2f ms, worker %d's "
                     "first; its answer comes later",
                     t->job.bound, r, t->pushed[r][s] * 1e3, o,
                     t->pushed[o][u] * 1e3, allowed(t, r, s) * 1e3, r);
}

static void want_no_wait(struct lab_case *k, const struct run *t)
{
    for (int r = 0; t && r < t->workers; r++)
        for (int s = 0; s < t->steps[r] && !lab_failed(k); s++) {
            want_turns(k, t, r, s);
            lab_want(k, t->answered[r][s] <= allowed(t, r, s) + t->slack_s,
                     "bound %d: worker %d sends push %d at %.2f ms and may go "
                     "on at %.2f ms; it is answered at %.2f ms",
                     t->job.bound, r, s + 1, t->pushed[r][s] * 1e3,
                     allowed(t, r, s) * 1e3, t->answered[r][s] * 1e3);
        }
}

// Tries all bounds with a shape, and hidden shapes.
static void want_pace(struct lab_case *k, struct shape shape)
{
    for (int bound = -1; bound <= 3; bound++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            want_no_wait(k, served(k, shape, bound, seed));
    for (int i = 0; i < 7 && lab_hidden(k); i++)
        want_no_wait(k, served(k, hidden_shape(k, i, shape.early),
                               (int)lab_pick(k, 0, 19),
                               lab_pick(k, 100, 1 << 20)));
}

static void waiters(struct lab_case *k)
{
    want_pace(k, usual);
    if (lab_hidden(k)) // without a bound, far ahead
        want_no_wait(k, served(k, many_pushes(200), -1, 1));
    if (lab_hidden(k)) // with one, for long
        want_no_wait(k, served(k, many_pushes(1), 2, 1));
}

static void leave(struct lab_case *k)
{
    want_pace(k, leaving);
}

// The earliest time at which all fast workers have their last answers. A step
// takes 2 ms, longer on the last worker, and the time of a push and its answer.
static double explained(const struct shape *h, int bound)
{
    double pushed[MOST_WORKERS][MOST_STEPS], last = 0;
    double trip_s = 2 * (h->alpha_s + 4. * (double)h->n / h->bytes_per_s);
    int w = h->workers, steps = h->steps;
    for (int s = 0; s < steps; s++)
        for (int r = 0; r < w; r++) {
            double begin = 0;
            for (int o = 0; o < w && s > 0; o++) {
                if (o == r)
                    begin = fmax(begin, pushed[r][s - 1]);
                else if (bound >= 0 && s > bound)
                    begin = fmax(begin, pushed[o][s - 1 - bound]);
            }
            pushed[r][s] = begin + (s > 0 ? trip_s : 0) +
                           2e-3 * (r == w - 1 ? h->slow : 1);
        }
    for (int r = 0; r < w - 1; r++) {
        double end = pushed[r][steps - 1];
        for (int o = 0; o < w && bound >= 0; o++)
            end = fmax(end, pushed[o][steps - 1 - bound]);
        last = fmax(last, end + trip_s);
    }
    return last;
}

static void want_speed(struct lab_case *k, struct shape shape, int bound)
{
    const struct run *t = served(k, shape, bound, 0);
    if (!t)
        return;
    double is = 0, ought = explained(&shape, ahead(bound));
    for (int r = 0; r < shape.workers - 1; r++)
        is = fmax(is, t->answered[r][shape.steps - 1]);
    lab_record(k, shape.workers, shape.n,
               bound < 0 ? "seconds_without" : "seconds", is);
    lab_speed(k, is, ought,
              "bound %d, %d workers, the last is %g times as slow: the others "
              "have made %d pushes after %.2f ms, the bound allows it after "
              "%.2f ms",
              bound, shape.workers, shape.slow, shape.steps, is * 1e3,
              ought * 1e3);
}

static void pace(struct lab_case *k)
{
    struct shape half = usual;
    half.slow = 2;
    for (int bound = -1; bound <= 3; bound++)
        want_speed(k, half, bound);
    for (int i = 1; i < 5 && lab_hidden(k); i++)
        want_speed(k, hidden_shape(k, i, false), (int)lab_pick(k, 0, 9) - 1);
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
