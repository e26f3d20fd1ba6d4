// grade.c - lab 13: the tests of outer steps, fragments and overlap.
//
// The expected parameters come from all workers' training one after the other,
// written here without messages. An inner step goes some way to a place that
// differs by worker, step and element.

#include "labs/13-outer/outer.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { MOST_WORKERS = 6, MOST_HIDDEN = 16, MANY = 24, MOST_FRAGMENTS = 3000 };

struct task {
    struct outer outer;
    struct lab *l[MOST_HIDDEN]; // by worker, while it runs
    double seconds;             // of an inner step
    float *p[MOST_HIDDEN];
};

static float first(size_t i)
{
    return (float)(i % 11) / 4 - 1;
}

static void inner_of(const struct outer *o, int rank, int step, float *p)
{
    uint64_t key = rng_key(13, (uint64_t)rank * 1000003 + (uint64_t)step);
    for (size_t i = 0; i < o->n; i++) {
        float place = 3 * (float)rng_uniform(key, i) + (float)(i % 5) - 2;
        p[i] += 0.2f * (place - p[i]);
    }
}

// An inner step of the worker whose parameters are p.
static void inner(const struct outer *o, int step, float *p)
{
    const struct task *t = (const struct task *)o;
    int r = 0;
    while (r < MOST_HIDDEN - 1 && t->p[r] != p)
        r++;
    lab_compute(t->l[r], t->seconds);
    inner_of(o, r, step, p);
}

static int body(struct lab *l, void *arg)
{
    struct task *t = arg;
    t->l[l->rank] = l;
    for (size_t i = 0; i < t->outer.n; i++)
        t->p[l->rank][i] = first(i);
    return outer_train(l, &t->outer, t->p[l->rank]);
}

// ---- what must come out

static size_t first_of(const struct outer *o, int f)
{
    return o->n * (size_t)f / (size_t)o->fragments;
}

// Whether fragment f is due after inner step s.
static bool due(const struct outer *o, int f, int s)
{
    int turn = lab_place(LAB_FRAGMENTS, f, o->fragments);
    return (s - o->every * (turn + 1) / o->fragments) % o->every == 0;
}

// One element's outer step, in the term's rule.
static void expect_step(float lr, float momentum, float mean, float *start,
                        float *velocity)
{
    float d = *start - mean, part = LAB_OUTER == 2 ? 1 - momentum : 1;
    *velocity = momentum * *velocity + part * d;
    *start -= lr * (LAB_OUTER == 0 ? d + momentum * *velocity : *velocity);
}

// Training of all workers. sent: what each worker's fragments were when they
// began to travel.
struct expected {
    float *p[MOST_HIDDEN], *sent[MOST_HIDDEN], *start, *velocity;
};

static void expect_merge(const struct outer *o, int w, int f,
                         struct expected *e)
{
    static const float kept[] = {0, 0.5f, 1};
    for (size_t i = first_of(o, f); i < first_of(o, f + 1); i++) {
        float sum = 0;
        for (int r = 0; r < w; r++)
            sum += e->sent[r][i];
        expect_step(o->lr, o->momentum, sum / (float)w, &e->start[i],
                    &e->velocity[i]);
        for (int r = 0; r < w; r++)
            e->p[r][i] =
                e->start[i] + kept[LAB_MERGE] * (e->p[r][i] - e->sent[r][i]);
    }
}

static void expect_train(const struct outer *o, int w, struct expected *e)
{
    int merge_at[MOST_FRAGMENTS] = {0};
    for (int s = 1; s <= o->steps; s++) {
        for (int r = 0; r < w; r++)
            inner_of(o, r, s, e->p[r]);
        for (int f = 0; f < o->fragments; f++) {
            size_t off = first_of(o, f), n = first_of(o, f + 1) - off;
            if (due(o, f, s)) {
                merge_at[f] = s + o->overlap;
                for (int r = 0; r < w; r++)
                    memcpy(e->sent[r] + off, e->p[r] + off, n * sizeof(float));
            }
            if (merge_at[f] == s || (merge_at[f] && s == o->steps)) {
                merge_at[f] = 0;
                expect_merge(o, w, f, e);
            }
        }
    }
}

static bool expect_open(struct lab_case *k, struct expected *e, size_t n, int w)
{
    e->start = lab_memory(k, n, sizeof(float));
    e->velocity = lab_memory(k, n, sizeof(float));
    bool whole = e->start && e->velocity;
    for (int r = 0; whole && r < w; r++) {
        e->p[r] = lab_memory(k, n, sizeof(float));
        e->sent[r] = lab_memory(k, n, sizeof(float));
        whole = e->p[r] && e->sent[r];
        for (size_t i = 0; whole && i < n; i++)
            e->p[r][i] = e->start[i] = first(i);
    }
    return whole;
}

// ---- the tests

static struct outer outer_of(size_t n, int fragments, int every, int overlap)
{
    return (struct outer){n,    fragments, every, overlap, 3 * every + 1,
                          0.7f, 0.5f,      inner};
}

// Runs a job. Returns NULL if it failed.
static const struct lab_run *trained(struct lab_case *k,
                                     const struct lab_world *world,
                                     const struct outer *o, double seconds,
                                     struct task **t)
{
    *t = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof **t);
    if (!*t)
        return NULL;
    (*t)->outer = *o;
    (*t)->seconds = seconds;
    for (int r = 0; r < world->workers; r++)
        if (!((*t)->p[r] = lab_memory(k, o->n, sizeof(float))))
            return NULL;
    const struct lab_run *run = lab_virtual(k, world, body, *t);
    return lab_clean(k, run) ? run : NULL;
}

// A job: its cluster, and the seconds of an inner step.
struct scene {
    struct lab_world world;
    struct outer outer;
    double inner_s;
};

static struct scene usual(int w, struct outer o)
{
    return (struct scene){.world = {.workers = w}, .outer = o, .inner_s = 1};
}

// The seconds of an exchange of the longest fragment.
static double exchange_s(const struct lab_world *net, const struct outer *o)
{
    size_t f = (size_t)o->fragments;
    double bytes = 4. * (double)((o->n + f - 1) / f) * (net->workers - 1);
    return net->alpha_s + bytes / net->bytes_per_s;
}

// A hidden case of any test; fragments may be 0: any number. An exchange is a
// little shorter than an inner step.
static struct scene hidden_scene(const struct lab_case *k, int fragments,
                                 int overlap)
{
    struct scene s = {.world = lab_drawn(k, (int)lab_pick(k, 2, 9))};
    fragments = fragments ? fragments : (int)lab_pick(k, 1, MANY);
    int every = fragments + (int)lab_pick(k, 0, 9);
    s.outer = outer_of(lab_pick(k, 100, 900), fragments, every,
                       overlap ? (int)lab_pick(k, 0, (size_t)every - 1) : 0);
    s.outer.steps += (int)lab_pick(k, 0, (size_t)every);
    s.outer.lr = (float)lab_pick(k, 10, 130) / 100;
    s.outer.momentum = (float)lab_pick(k, 0, 9) / 10;
    s.inner_s = exchange_s(&s.world, &s.outer) * 1.25;
    return s;
}

// Runs a job and checks the parameters. far: by how much a number may differ,
// relative to its size; below 1e-5 all workers must have the same bits. 0:
// nothing where the start is 0, since there one outer step with lr 1 rounds
// nothing. Returns NULL if the test has failed.
static const struct lab_run *want_scene(struct lab_case *k,
                                        const struct scene *s, double far)
{
    const struct outer *o = &s->outer;
    int w = s->world.workers;
    struct expected e;
    struct task *t;
    const struct lab_run *run = trained(k, &s->world, o, s->inner_s, &t);
    if (!run || !expect_open(k, &e, o->n, w))
        return NULL;
    expect_train(o, w, &e);
    for (int r = 0; r < w; r++)
        for (size_t i = 0; i < o->n; i++) {
            double is = (double)t->p[r][i], ought = (double)e.p[r][i];
            lab_want(k,
                     far > 1e-5 ||
                         memcmp(&t->p[r][i], &t->p[0][i], sizeof(float)) == 0,
                     "%d workers, n = %zu: after an outer step p[%zu] is %.9g "
                     "on worker %d and %.9g on worker 0",
                     w, o->n, i, is, r, (double)t->p[0][i]);
            if (far == 0 && first(i) != 0)
                continue;
            lab_want(k, fabs(is - ought) <= far * (1 + fabs(ought)),
                     "%d workers, n = %zu, %d fragments, every %d, overlap %d, "
                     "lr %g, momentum %g: after %d steps p[%zu] of worker %d "
                     "is %.9g, not %.9g",
                     w, o->n, o->fragments, o->every, o->overlap, (double)o->lr,
                     (double)o->momentum, o->steps, i, r, is, ought);
        }
    return lab_failed(k) ? NULL : run;
}

static void want_trained(struct lab_case *k, const struct outer *o, int w,
                         double far)
{
    struct scene s = usual(w, *o);
    want_scene(k, &s, far);
}

static void want_rule(struct lab_case *k, size_t n, float lr, float momentum)
{
    float *mean = lab_memory(k, n, sizeof *mean);
    float *start = lab_memory(k, n, sizeof *start);
    float *ought = lab_memory(k, n, sizeof *ought);
    float *velocity = lab_memory(k, n, sizeof *velocity);
    float *v = lab_memory(k, n, sizeof *v);
    if (!mean || !start || !ought || !velocity || !v)
        return;
    for (size_t i = 0; i < n; i++)
        start[i] = ought[i] = first(i);
    for (int step = 1; step <= 5; step++) {
        for (size_t i = 0; i < n; i++) {
            mean[i] = start[i] + 1 + (float)(i % 3);
            expect_step(lr, momentum, mean[i], &ought[i], &v[i]);
        }
        outer_step(lr, momentum, mean, start, velocity, n);
        for (size_t i = 0; i < n; i++)
            lab_want(k,
                     fabsf(start[i] - ought[i]) <= 1e-3f &&
                         fabsf(velocity[i] - v[i]) <= 1e-3f,
                     "lr %g, momentum %g, outer step %d: from a mean of %g "
                     "start[%zu] becomes %g and its velocity %g, not %g and %g",
                     (double)lr, (double)momentum, step, (double)mean[i], i,
                     (double)start[i], (double)velocity[i], (double)ought[i],
                     (double)v[i]);
    }
}

static void rule(struct lab_case *k)
{
    static const float rates[][2] = {{1, 0},
                                     {0.5f, 0},
                                     {1, 0.5f},
                                     {0.7f, 0.9f}};
    for (int i = 0; i < 4; i++)
        want_rule(k, 20, rates[i][0], rates[i][1]);
    for (int i = 0; i < 4 && lab_hidden(k); i++)
        want_rule(k, lab_pick(k, 21, 3000), (float)lab_pick(k, 1, 99) / 100,
                  i ? (float)lab_pick(k, 1, 98) / 100 : 0.99f);
    if (lab_hidden(k)) { // a 16-bit number does not count so many
        want_rule(k, lab_pick(k, 70000, 90000), 0.7f, 0.9f);
        want_rule(k, 20, (float)lab_pick(k, 110, 190) / 100, 1);
    }
}

// The mean of all workers after every outer step, with the same bits.
static void want_average(struct lab_case *k, int w, size_t n, int every)
{
    struct outer o = {n, 1, every, 0, 2 * every, 1, 0, inner};
    want_trained(k, &o, w, 2e-6);
}

static void average(struct lab_case *k)
{
    static const size_t sizes[] = {1, 5, 100};
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int s = 0; s < 3; s++)
            want_average(k, w, sizes[s], 1 + 3 * s);
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_average(k, (int)lab_pick(k, 7, MOST_HIDDEN),
                     lab_pick(k, 101, 1500), (int)lab_pick(k, 2, 9));
    if (lab_hidden(k)) { // adding in another order gives other bits
        struct outer o = {lab_pick(k, 500, 900), 1, 1, 0, 1, 1, 0, inner};
        want_trained(k, &o, (int)lab_pick(k, 7, MOST_HIDDEN), 0);
    }
}

static void momentum(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int every = 1; every <= 5; every += 2) {
            struct outer o = outer_of(30, 1, every, 0);
            want_trained(k, &o, w, 1e-4);
        }
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct scene s = hidden_scene(k, 1, 0);
        want_scene(k, &s, 1e-4);
    }
}

static void fragments(struct lab_case *k)
{
    for (int w = 1; w <= 4; w++)
        for (int f = 1; f <= 7; f += 2) {
            struct outer o = outer_of(50, f, 7, 0);
            want_trained(k, &o, w, 1e-4);
        }
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct scene s = hidden_scene(k, i ? 0 : 21, 0);
        s.outer.n = i ? s.outer.n : 681; // too odd for a float
        want_scene(k, &s, 1e-4);
    }
    // every / fragments is rounded, as a float or as a double.
    static const int odd[][2] = {{11, 13}, {13, 15}, {22, 22}};
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct outer o = outer_of(lab_pick(k, 50, 90), odd[i][0], odd[i][1], 0);
        want_trained(k, &o, 2, 1e-4);
    }
    if (lab_hidden(k)) { // n * 23 is beyond 2^24, and no multiple of 24
        size_t n = 24 * lab_pick(k, 46000, 50000) + 1;
        struct outer o = {n, 24, 2, 0, 2, 0.7f, 0.5f, inner};
        want_trained(k, &o, 2, 1e-4);
    }
    if (lab_hidden(k)) { // n * 3000 is beyond 2^31
        struct outer o = {720001, MOST_FRAGMENTS, 3, 0, 3, 0.7f, 0.5f, inner};
        want_trained(k, &o, 1, 1e-4);
    }
}

static void overlap(struct lab_case *k)
{
    for (int w = 1; w <= 4; w++)
        for (int f = 1; f <= 3; f++)
            for (int late = 1; late <= 5; late += 2) {
                struct outer o = outer_of(50, f, 6, late);
                o.steps -= late != 3; // then one is due after the last step
                want_trained(k, &o, w, 1e-4);
            }
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct scene s = hidden_scene(k, 0, 1);
        want_scene(k, &s, 1e-4);
    }
    if (lab_hidden(k)) { // a byte does not count so many steps
        struct outer o = outer_of(9, 2, 6, 3);
        o.steps = (int)lab_pick(k, 260, 400);
        o.lr = 1;
        want_trained(k, &o, 2, 1e-4);
    }
}

static void want_bytes(struct lab_case *k, struct scene s)
{
    const struct lab_run *run = want_scene(k, &s, 1e-4);
    const struct outer *o = &s.outer;
    int w = s.world.workers;
    size_t law = 0;
    for (int step = 1; step <= o->steps; step++)
        for (int f = 0; f < o->fragments; f++)
            if (due(o, f, step))
                law +=
                    4 * (first_of(o, f + 1) - first_of(o, f)) * (size_t)(w - 1);
    for (int r = 0; run && r < w; r++) {
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        lab_record(k, w, (size_t)o->fragments, "bytes_out", (double)out);
        lab_want(k, out == law && in == law,
                 "%d workers, n = %zu, %d fragments, every %d, %d steps: "
                 "worker %d sent %zu bytes and received %zu, not %zu",
                 w, o->n, o->fragments, o->every, o->steps, r, out, in, law);
    }
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int f = 1; f <= 5; f += 2)
            want_bytes(k, usual(w, outer_of(101, f, 5, 0)));
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_bytes(k, hidden_scene(k, 0, 0));
}

// The seconds of the inner steps and of what cannot be hidden. Fragments are
// due at different steps, and an exchange is shorter than the steps between.
static double least_seconds(const struct scene *its)
{
    const struct outer *o = &its->outer;
    double total = 0, after = 0, inner_s = its->inner_s;
    for (int s = 1; s <= o->steps; s++) {
        total += inner_s;
        for (int f = 0; f < o->fragments; f++) {
            size_t n = first_of(o, f + 1) - first_of(o, f);
            double takes = its->world.alpha_s + 4. * (double)n *
                                                    (its->world.workers - 1) /
                                                    its->world.bytes_per_s;
            int left = o->steps - s; // inner steps until the end
            int hidden = o->overlap < left ? o->overlap : left;
            if (!due(o, f, s))
                continue;
            double exposed = fmax(0, takes - hidden * inner_s);
            if (o->overlap)
                after = fmax(after, exposed);
            else
                total += exposed;
        }
    }
    return total + after;
}

static void want_time(struct lab_case *k, struct scene s)
{
    const struct lab_run *run = want_scene(k, &s, 1e-4);
    const struct outer *o = &s.outer;
    int w = s.world.workers;
    if (!run)
        return;
    double ought = least_seconds(&s);
    lab_record(k, w, (size_t)o->fragments,
               o->overlap ? "seconds_overlap" : "seconds", run->v->seconds);
    lab_speed(k, run->v->seconds, ought,
              "%d workers, %d fragments, overlap %d, inner steps of %g s: took "
              "%.4g s, %.4g s are enough",
              w, o->fragments, o->overlap, s.inner_s, run->v->seconds, ought);
}

static void in_time(struct lab_case *k)
{
    for (int w = 2; w <= MOST_WORKERS; w += 2)
        for (int f = 1; f <= 4; f++)
            for (int late = 0; late <= 4; late += 2) {
                struct scene s = usual(w, outer_of(1200, f, 12, late));
                s.world.alpha_s = 1e-3;
                s.world.bytes_per_s = 4. * 1200 * (w - 1) / f / 7e-3;
                s.inner_s = 0.01;
                want_time(k, s);
            }
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_time(k, hidden_scene(k, 0, 1));
}

static const struct lab_test tests[] = {
    {"rule", 10, rule, NULL,
     "Workers that have moved up by 1 have a pseudo-gradient of -1: a step "
     "against it goes up."},
    {"average", 15, average, "rule",
     "With lr 1 and no momentum the outer step gives the mean. Add in the same "
     "order on all workers."},
    {"momentum", 10, momentum, "average",
     "start and velocity stay from one outer step to the next. Is anything of "
     "them computed from this worker's own p?"},
    {"fragments", 10, fragments, "momentum",
     "7 fragments of 50 elements: the first has 7 elements, the second one 7, "
     "the last one 8. Each has its own steps."},
    {"overlap", 10, overlap, "fragments",
     "What was sent, and not what p is when it is merged, is in the mean. What "
     "is under way after the last step?"},
    {"bytes", 5, bytes, "fragments",
     "Only the fragment that is due travels, once to each other worker."},
    {"time", 10, in_time, "overlap",
     "Begin the receives with the sends: a message travels only when both "
     "sides have called."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 13,
    .name = "train apart, agree seldom",
    .file = "outer.c",
    .functions = "outer_step outer_train",
    .floor = 0,
    .tests = tests,
};
