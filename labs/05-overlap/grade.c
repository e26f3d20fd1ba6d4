// grade.c - lab 5: the tests of buckets and their exchange.

#include "labs/05-overlap/overlap.h"

#include "labs/check.h"
#include "labs/term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 12, LAYERS = 8, MOST_LAYERS = 64 };

// A cluster, and the layers of a model, the last layer first.
struct scene {
    struct lab_world world;
    struct layer layers[MOST_LAYERS];
    int count; // of layers
    size_t n;  // elements of all layers
};

static struct scene usual(int workers, double alpha_s, double bytes_per_s)
{
    struct scene s = {.world = {.workers = workers,
                                .threads = 2,
                                .alpha_s = alpha_s,
                                .bytes_per_s = bytes_per_s},
                      .count = LAYERS,
                      .n = 240000};
    for (int i = 0; i < LAYERS; i++)
        s.layers[i] = (struct layer){i % 7 ? 20000 : 60000, i ? 1e-3 : 2e-3};
    return s;
}

// A hidden case, of any test. Its layers have 1 to 7 times `least` elements.
static struct scene hidden_scene(const struct lab_case *k, int count,
                                 size_t least)
{
    struct scene s = {.world = lab_drawn(k, (int)lab_pick(k, 2, MOST_WORKERS)),
                      .count = count};
    s.world.threads = 2;
    for (uint64_t i = 0; i < (uint64_t)count; i++) {
        s.layers[i] =
            (struct layer){least + lab_draw(k, i, 6 * least),
                           1e-5 * (double)(20 + lab_draw(k, 80 + i, 200))};
        s.n += s.layers[i].n;
    }
    return s;
}

struct job;

// A step, its vector and its job.
struct judged {
    struct step step; // the first member, so that it has the same address
    float *v;
    struct job *job;
};

// What all threads of a run share.
struct job {
    struct lab_case *test;
    const struct scene *scene;
    struct bucket buckets[MOST_BUCKETS];
    int count;
    bool shuffled; // odd workers complete pairs of buckets in reverse order
    struct judged steps[MOST_WORKERS];
    bool complete[MOST_WORKERS][MOST_BUCKETS];
    int summed[MOST_WORKERS]; // buckets
    float *v[MOST_WORKERS], *in[MOST_WORKERS];
};

static float number(int rank, size_t i)
{
    return (float)(rank * 100 + (int)(i % 89));
}

static struct judged *judged(struct step *s)
{
    return (struct judged *)s;
}

static int post(struct lab *l, struct step *s, int b)
{
    struct job *j = judged(s)->job;
    if (!lab_want(j->test, b >= 0 && b < s->count,
                  "worker %d posts bucket %d; there are %d", l->rank, b,
                  s->count))
        return -1;
    return lab_tell(l, 1, b);
}

static int take(struct lab *l, struct step *s, int *b)
{
    (void)s;
    return lab_hear(l, 0, b);
}

static int done(struct lab *l, struct step *s)
{
    (void)s;
    return lab_tell(l, 0, 0);
}

static int join(struct lab *l, struct step *s)
{
    int nothing;
    (void)s;
    return lab_hear(l, 1, &nothing);
}

// Where chunk c of a bucket begins.
static size_t cut(const struct bucket *b, int c, int w)
{
    return b->off + b->n * (size_t)c / (size_t)w;
}

// Worker c adds chunk c of the bucket and sends the sum to all. In each hop a
// worker sends `hop` places on, and receives from as many places before it.
static int sum(struct lab *l, struct step *s, int b)
{
    struct job *j = judged(s)->job;
    float *v = judged(s)->v;
    int me = l->rank, w = l->workers;
    if (!lab_want(j->test, b >= 0 && b < s->count,
                  "worker %d sums bucket %d; there are %d", me, b, s->count))
        return -1;
    const struct bucket *bucket = &s->buckets[b];
    size_t own = cut(bucket, me, w), len = cut(bucket, me + 1, w) - own;
    if (!lab_want(j->test, j->complete[me][b],
                  "worker %d sums bucket %d before its gradients are complete",
                  me, b))
        return -1;
    for (int hop = 1; hop < 2 * w; hop++) {
        int to = (me + hop) % w, from = (me - hop % w + w) % w;
        size_t there = cut(bucket, to, w), come = cut(bucket, from, w);
        bool back = hop > w;
        struct lab_req r[2];
        if (hop == w)
            continue;
        if (lab_isend(l, to, v + (back ? own : there),
                      4 * (back ? len : cut(bucket, to + 1, w) - there),
                      &r[0]) ||
            lab_irecv(l, from, back ? v + come : j->in[me],
                      4 * (back ? cut(bucket, from + 1, w) - come : len),
                      &r[1]) ||
            lab_wait(l, r, 2))
            return -1;
        for (size_t i = 0; !back && i < len; i++)
            v[own + i] += j->in[me][i];
    }
    j->summed[me]++;
    return 0;
}

static int report(struct lab *l, struct job *j, struct step *s, int b)
{
    double before = lab_now(l);
    const struct bucket *bucket = &s->buckets[b];
    for (size_t i = bucket->off; i < bucket->off + bucket->n; i++)
        judged(s)->v[i] = number(l->rank, i);
    j->complete[l->rank][b] = true;
    int err = lab_ready(l, s, b);
    lab_want(j->test, lab_now(l) == before,
             "worker %d waits %g s in lab_ready(), which must not wait",
             l->rank, lab_now(l) - before);
    return err;
}

// Whether a bucket is complete when backward has `left` elements to do.
static bool is_complete(size_t n, const struct bucket *b, size_t left)
{
    return LAB_CUT_UP ? b->off + b->n <= n - left : b->off >= left;
}

// Backward: calls lab_ready() for the buckets that each layer completes.
static int compute(struct lab *l, struct job *j, struct step *s)
{
    const struct layer *layers = j->scene->layers;
    size_t left = s->n;
    int told = 0;
    for (int i = 0; i < j->scene->count; i++) {
        lab_compute(l, layers[i].seconds);
        left -= layers[i].n;
        int to = told;
        while (to < s->count && is_complete(s->n, &s->buckets[to], left))
            to++;
        for (; told < to; told++) {
            bool pair = j->shuffled && l->rank % 2 && told + 1 < to;
            if (pair && report(l, j, s, told + 1))
                return -1;
            if (report(l, j, s, told))
                return -1;
            told += pair;
        }
    }
    int err = lab_exchange(l, s), all = j->summed[l->rank];
    lab_want(j->test, err || all == s->count,
             "worker %d returns from lab_exchange() when %d of %d buckets are "
             "summed",
             l->rank, all, s->count);
    return err;
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    struct step *s = &j->steps[l->rank].step;
    return l->thread ? lab_communicate(l, s) : compute(l, j, s);
}

static void job_close(struct job *j)
{
    for (int r = 0; j && r < MOST_WORKERS; r++) {
        free(j->v[r]);
        free(j->in[r]);
    }
    free(j);
}

// Makes the job of a run with the student's buckets. If the sizes are 0, the
// student's bucket_sizes() chooses them.
static struct job *job_open(struct lab_case *k, const struct scene *its,
                            size_t first, size_t size)
{
    const struct lab_world *world = &its->world;
    size_t n = its->n;
    struct job *j = calloc(1, sizeof *j);
    bool whole = j;
    for (int r = 0; whole && r < world->workers; r++)
        whole = (j->v[r] = malloc(n * sizeof(float))) &&
                (j->in[r] = malloc(n * sizeof(float)));
    struct lab l = {.workers = world->workers,
                    .alpha_s = world->alpha_s,
                    .bytes_per_s = world->bytes_per_s};
    if (lab_want(k, whole, "no memory for a model") && !size)
        bucket_sizes(&l, its->layers, its->count, &first, &size);
    if (whole && lab_want(k, first > 0 && size > 0,
                          "bucket_sizes() chose %zu and %zu, not two positive "
                          "sizes",
                          first, size))
        j->count = bucket_cut(j->buckets, MOST_BUCKETS, n, first, size);
    if (!whole || !lab_want(k, j->count > 0 && j->count <= MOST_BUCKETS,
                            "bucket_cut() of %zu elements by %zu and %zu "
                            "returned %d",
                            n, first, size, j->count)) {
        job_close(j);
        return NULL;
    }
    // What they are used for would be outside the vectors.
    for (int b = 0; b < j->count; b++) {
        const struct bucket *is = &j->buckets[b];
        if (lab_want(k, is->off <= n && is->n <= n - is->off,
                     "n = %zu: bucket %d is %zu elements at %zu", n, b, is->n,
                     is->off))
            continue;
        job_close(j);
        return NULL;
    }
    j->test = k;
    j->scene = its;
    for (int r = 0; r < world->workers; r++) {
        memset(j->v[r], 0xff, n * sizeof(float));
        j->steps[r] = (struct judged){.step = {.n = n,
                                               .buckets = j->buckets,
                                               .count = j->count,
                                               .post = post,
                                               .take = take,
                                               .done = done,
                                               .join = join,
                                               .sum = sum},
                                      .v = j->v[r],
                                      .job = j};
    }
    return j;
}

static void want_sums(struct lab_case *k, const struct job *j, int w)
{
    for (int r = 0; r < w && !lab_failed(k); r++)
        for (size_t i = 0; i < j->scene->n; i++) {
            float is = j->v[r][i], ought = 0;
            for (int o = 0; o < w; o++)
                ought += number(o, i);
            lab_want(k, is == ought,
                     "%d workers, %d buckets: v[%zu] of worker %d is %g, the "
                     "sum is %g",
                     w, j->count, i, r, (double)is, (double)ought);
        }
}

// Checks one call of bucket_cut(). The buckets must tile the vector, beginning
// at its end (with LAB_CUT_UP, at its start). All must be as long as asked, but
// for the last or the second one, or those after the first differ by one.
static void want_cut(struct lab_case *k, size_t n, size_t first, size_t size,
                     int most_of)
{
    struct bucket out[MOST_BUCKETS + 1];
    size_t end = n;
    int needed = 0;
    for (size_t left = n; left > 0; needed++) {
        size_t most = needed ? size : first;
        left -= left < most ? left : most;
    }
    memset(out, 0, sizeof out);
    int count = bucket_cut(out, most_of, n, first, size);
    bool fits = needed <= most_of;
    int ought = fits || LAB_TOO_MANY == 2 ? needed : LAB_TOO_MANY ? 0 : -1;
    if (!lab_want(
            k, count == ought,
            "bucket_cut(n = %zu, first = %zu, size = %zu) returned %d; %d "
            "buckets are needed and at most %d are allowed",
            n, first, size, count, needed, most_of))
        return;
    for (int b = 0; b < count && fits; b++) {
        size_t most = b ? size : first, len = end < most ? end : most;
        size_t after = (size_t)(count - b); // this bucket and those after it
        if (LAB_REST == 1 && b == 1)
            len = (end - 1) % size + 1;
        if (LAB_REST == 2 && b)
            len = (end + after - 1) / after;
        size_t off = LAB_CUT_UP ? n - end : end - len;
        lab_want(k, out[b].n == len && out[b].off == off,
                 "n = %zu, first = %zu, size = %zu: bucket %d is %zu elements "
                 "at %zu, not %zu at %zu",
                 n, first, size, b, out[b].n, out[b].off, len, off);
        end -= len;
    }
}

static void cuts(struct lab_case *k)
{
    static const size_t sizes[] = {1, 2, 3, 7, 50, 1000};
    for (size_t n = 1; n < 300; n += 1 + n / 4)
        for (int a = 0; a < 6; a++)
            for (int b = 0; b < 6 && !lab_failed(k); b++)
                want_cut(k, n, sizes[a], sizes[b], MOST_BUCKETS);
    for (int i = 0; i < 10 && lab_hidden(k) && !lab_failed(k); i++)
        want_cut(k, lab_pick(k, 1, 9999), lab_pick(k, 1, 999),
                 lab_pick(k, 79, 999), i % 2 ? MOST_BUCKETS : i + 1);
    for (size_t i = 0; i < 2 && lab_hidden(k) && !lab_failed(k); i++)
        want_cut(k, 3 * MOST_BUCKETS + i, 3, 3, MOST_BUCKETS); // or one more
    if (lab_hidden(k) && !lab_failed(k))
        want_cut(k, 10000000000 + lab_pick(k, 0, 99), lab_pick(k, 1, 99),
                 lab_pick(k, 90000000, 400000000), MOST_BUCKETS);
    if (lab_hidden(k) && !lab_failed(k)) // lengths beyond 2^31
        want_cut(k, 20000000000, lab_pick(k, 2200000000, 2900000000),
                 lab_pick(k, 4300000000, 5000000000), 9);
}

// Runs a step. Returns NULL if the test has failed; else the caller closes the
// job.
static struct job *stepped(struct lab_case *k, const struct scene *s,
                           size_t first, size_t size,
                           const struct lab_run **run)
{
    struct job *j = lab_failed(k) ? NULL : job_open(k, s, first, size);
    if (j)
        j->shuffled = s->world.slow != NULL;
    *run = j ? lab_virtual(k, &s->world, body, j) : NULL;
    if (lab_clean(k, *run))
        return j;
    job_close(j);
    return NULL;
}

static void early(struct lab_case *k)
{
    struct scene s = usual(3, 20e-6, 1e9);
    const struct lab_run *run;
    job_close(stepped(k, &s, 10000, 15000, &run));
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        s = hidden_scene(k, LAYERS, 5000);
        job_close(stepped(k, &s, lab_pick(k, 2500, 30000),
                          s.n / lab_pick(k, 5, 90), &run));
    }
}

static void want_summed(struct lab_case *k, const struct scene *s, size_t first,
                        size_t size)
{
    const struct lab_run *run;
    struct job *j = stepped(k, s, first, size, &run);
    if (j)
        want_sums(k, j, s->world.workers);
    job_close(j);
}

static void sums(struct lab_case *k)
{
    for (int w = 1; w <= 8; w += 1 + w / 3) {
        struct scene s = usual(w, 20e-6, 1e9);
        want_summed(k, &s, 0, 0);
    }
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct scene s = hidden_scene(k, LAYERS, 5000);
        want_summed(k, &s, lab_pick(k, 2500, 30000),
                    i ? lab_pick(k, 2500, 30000) : s.n / lab_pick(k, 70, 99));
    }
}

// Workers that differ in speed, and in the order of their lab_ready() calls.
static void want_order(struct lab_case *k, int w, size_t first, size_t size)
{
    double slow[2 * MOST_WORKERS];
    for (int r = 0; r < 2 * MOST_WORKERS; r++)
        slow[r] = 1 + 0.3 * ((r * 7) % 5);
    struct scene s = usual(w, 20e-6, 1e9);
    s.world.slow = slow;
    want_summed(k, &s, first, size);
}

static void order(struct lab_case *k)
{
    for (int w = 2; w <= 5; w++)
        want_order(k, w, 2000, 5000);
    for (size_t i = 0; i < 2 && lab_hidden(k); i++)
        want_order(k, 3, 6000, i ? 6000 : 20000); // also the last pair turned
}

// The seconds from the end of backward to the last bucket's sum, if buckets are
// summed one after the other, each as early as possible.
static double schedule(const struct scene *s, size_t size)
{
    double ready = 0, end = 0;
    size_t complete = s->n, at = s->n;
    int w = s->world.workers, i = 0;
    while (at > 0) {
        size_t len = at < size ? at : size;
        at -= len;
        while (complete > at) {
            complete -= s->layers[i].n;
            ready += s->layers[i++].seconds;
        }
        double each = 4. * (double)len / w / s->world.bytes_per_s;
        end = (end > ready ? end : ready) +
              2 * (w - 1) * (s->world.alpha_s + each);
    }
    return end - ready;
}

// The seconds that are exposed with the student's buckets, against the best
// equal buckets.
static void want_exposed(struct lab_case *k, const struct scene *s, size_t net)
{
    const struct lab_world *world = &s->world;
    double backward = 0, least = schedule(s, s->n);
    const struct lab_run *run;
    for (int i = 0; i < s->count; i++)
        backward += s->layers[i].seconds;
    for (size_t count = 2; count <= MOST_BUCKETS; count++)
        least = fmin(least, schedule(s, (s->n + count - 1) / count));
    struct job *j = stepped(k, s, 0, 0, &run);
    if (!j)
        return;
    double is = run->v->seconds - backward;
    lab_record(k, world->workers, net, "exposed_seconds", is);
    lab_speed(k, is, least,
              "%d workers, a = %g s, B = %g bytes/s: %.4g s are exposed with "
              "your %d buckets; the best equal buckets expose %.4g s",
              world->workers, world->alpha_s, world->bytes_per_s, is, j->count,
              least);
    want_sums(k, j, world->workers);
    job_close(j);
}

static void exposed(struct lab_case *k)
{
    static const double nets[][2] = {{20e-6, 1.25e8}, {20e-6, 1e9},
                                     {1e-3, 1.25e8},  {5e-6, 1e10},
                                     {2e-4, 1e9},     {5e-5, 3e7}};
    for (size_t net = 0; net < 6; net++)
        for (int w = 2; w <= 8; w *= 2) {
            struct scene s = usual(w, nets[net][0], nets[net][1]);
            want_exposed(k, &s, net);
        }
    for (size_t i = 0; i < 6 && lab_hidden(k); i++) {
        struct scene s = i < 5 ? hidden_scene(k, LAYERS, i < 4 ? 5000 : 1)
                               : hidden_scene(k, MOST_LAYERS, 500);
        s.world.alpha_s = i < 5 ? s.world.alpha_s : 1e-7;
        s.world.bytes_per_s = i < 5 ? s.world.bytes_per_s : 4e7;
        want_exposed(k, &s, 6 + i); // the last wants many small buckets
    }
}

static const struct lab_test tests[] = {
    {"cut", 10, cuts, NULL,
     LAB_CUT_UP
         ? "Begin at element 0. Each bucket begins where the one before ends."
         : "The first bucket ends at element n. Each bucket ends where the one "
           "before begins."},
    {"early", 10, early, "cut",
     "Only the buckets that lab_ready() was called with are complete."},
    {"sums", 10, sums, NULL,
     "Post every bucket once, and sum every bucket once."},
    {"order", 15, order, "cut",
     "One worker's bucket 3 may be complete before its bucket 2. Which bucket "
     "must all workers sum next?"},
    {"exposed", 25, exposed, "sums",
     "At least the last bucket's sum is exposed. Small buckets cost latency, "
     "large ones are complete late: compute the exposed seconds of many sizes "
     "in a loop, and take the best."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 5,
    .name = "buckets and overlap",
    .file = "overlap.c",
    .functions = "bucket_cut bucket_sizes lab_ready lab_exchange "
                 "lab_communicate",
    .floor = 10,
    .tests = tests,
};
