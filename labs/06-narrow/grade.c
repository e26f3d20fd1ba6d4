// grade.c - lab 6: the tests of a 16-bit exchange and its loss scale.
//
// Sums are compared with sums in double. Expected bytes are counted by dealing
// the elements out to their owners one at a time. The histories of the loss
// scale are written down step by step.

#include "labs/06-narrow/narrow.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { MOST_WORKERS = 8, MOST_HIDDEN = 20, STEPS = 16 };

static const size_t sizes[] = {1, 2, 7, 64, 1000};

enum { SIZES = sizeof sizes / sizeof *sizes };

enum kind { WHOLE, LARGE, SHORT, ANY, TINY };

struct job {
    enum kind kind;
    size_t n;
    float *v[MOST_HIDDEN];
    // For the tests of lab_step().
    const char *history; // 'x': an overflow
    float odd;           // the number that overflows
    float unit;          // a factor of the gradients in steps
    struct loss_scale scale[MOST_HIDDEN];
    float seen[MOST_HIDDEN][STEPS]; // the scale after each step
    bool skip[MOST_HIDDEN][STEPS];
};

static float number(enum kind kind, int rank, size_t i)
{
    uint64_t key = rng_key(6, (uint64_t)rank);
    switch (kind) {
    case LARGE:
        return 40000;
    case SHORT: // eleven bits: exact in fp16
        return 1 + floorf(1024 * (float)rng_uniform(key, i)) / 1024;
    case ANY:
        return (float)rng_normal(key, i);
    case TINY: // odd multiples of 2^-19; of 2^-24 after a factor of 2^-5
        return (float)(2 * (i % 50) + 1) * 0x1p-19f;
    default:
        return (float)((rank + 1) * (1 + (int)(i % 13)));
    }
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    float *v = j->v[l->rank];
    for (size_t i = 0; i < j->n; i++)
        v[i] = number(j->kind, l->rank, i);
    return lab_exchange(l, v, j->n);
}

// Calls lab_step() on numbers times the scale. In the steps marked 'x' one
// number overflows: on another worker and at another index in each step.
static int steps(struct lab *l, void *arg)
{
    struct job *j = arg;
    struct loss_scale *s = &j->scale[l->rank];
    float *v = j->v[l->rank];
    for (size_t t = 0; j->history[t]; t++) {
        for (size_t i = 0; i < j->n; i++)
            v[i] = number(WHOLE, l->rank, i) * j->unit * s->scale;
        if (j->history[t] == 'x' && (size_t)l->rank == t % (size_t)l->workers)
            v[t * 5 % j->n] = j->odd;
        if (lab_step(l, s, v, j->n, &j->skip[l->rank][t]))
            return -1;
        j->seen[l->rank][t] = s->scale;
        lab_release(l);
    }
    return 0;
}

static struct job *job_of(struct lab_case *k, enum kind kind, size_t n, int w)
{
    struct job *j = lab_memory(k, 1, sizeof *j);
    if (!j)
        return NULL;
    *j = (struct job){.kind = kind, .n = n};
    for (int r = 0; r < w; r++)
        if (!(j->v[r] = lab_memory(k, n, sizeof(float))))
            return NULL;
    return j;
}

// Runs an exchange of w workers. Returns its job, or NULL if it failed. If
// `run` is not NULL, *run becomes the run.
static const struct job *exchanged(struct lab_case *k, enum kind kind, size_t n,
                                   int w, const struct lab_run **run)
{
    struct lab_world world = {.workers = w};
    struct job *j = lab_failed(k) ? NULL : job_of(k, kind, n, w);
    const struct lab_run *its = j ? lab_virtual(k, &world, body, j) : NULL;
    if (run)
        *run = its;
    return lab_clean(k, its) ? j : NULL;
}

static double sum_of(const struct job *j, int w, size_t i)
{
    double sum = 0;
    for (int r = 0; r < w; r++)
        sum += (double)number(j->kind, r, i);
    return sum;
}

static void want_sums(struct lab_case *k, enum kind kind, size_t n, int w)
{
    const struct job *j = exchanged(k, kind, n, w, NULL);
    for (int r = 0; j && r < w; r++)
        for (size_t i = 0; i < j->n; i++)
            if (!lab_want(k, (double)j->v[r][i] == sum_of(j, w, i),
                          "%d workers, n = %zu: v[%zu] of worker %d is %.9g, "
                          "the sum is %.9g",
                          w, j->n, i, r, (double)j->v[r][i], sum_of(j, w, i)))
                return;
}

static void sums(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int b = 0; b < SIZES; b++)
            want_sums(k, WHOLE, sizes[b], w);
    if (lab_hidden(k)) // longer than 2^16 a part
        want_sums(k, WHOLE, lab_pick(k, 140000, 199999), 2);
    if (!lab_hidden(k))
        return;
    // The largest power of two that is at most 1/w is 2^-5.
    want_sums(k, TINY, lab_pick(k, 100, 999),
              (int)lab_pick(k, 17, MOST_HIDDEN));
}

// The number of elements that worker r owns, counted one after the other.
static size_t owned(size_t n, int w, int r)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        int c = 0; // the part that holds element i
        while (n * ((size_t)c + 1) / (size_t)w <= i)
            c++;
        count += lab_at(LAB_OWN, c, w) == r;
    }
    return count;
}

static void want_bytes(struct lab_case *k, size_t n, int w, bool record)
{
    const struct lab_run *run;
    const struct job *j = exchanged(k, WHOLE, n, w, &run);
    for (int r = 0; j && r < w; r++) {
        size_t own = owned(j->n, w, r);
        size_t law = 2 * (j->n - own + (size_t)(w - 1) * own);
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        if (record)
            lab_record(k, w, j->n, "bytes_out", (double)out);
        lab_want(k, out == law && in == law,
                 "%d workers, n = %zu: worker %d, which owns %zu, sent %zu "
                 "bytes and received %zu, the formula gives %zu",
                 w, j->n, r, own, out, in, law);
    }
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int b = 0; b < SIZES; b++)
            want_bytes(k, sizes[b], w, b == SIZES - 1);
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_bytes(k, lab_pick(k, 1001, 9999), (int)lab_pick(k, 9, MOST_HIDDEN),
                   false);
    if (lab_hidden(k)) // a float does not count so many elements
        want_bytes(k, (1 << 24) + 3, 3, false);
}

static void large(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++) {
        const struct job *j = exchanged(k, LARGE, 10, w, NULL);
        for (int r = 0; j && r < w; r++)
            for (size_t i = 0; i < j->n; i++)
                lab_want(k, fabs((double)j->v[r][i] / (40000. * w) - 1) < 1e-3,
                         "40000 on each of %d workers: the sum on worker %d is "
                         "%g",
                         w, r, (double)j->v[r][i]);
    }
}

static void want_same(struct lab_case *k, size_t n, int w)
{
    const struct job *j = exchanged(k, ANY, n, w, NULL);
    for (int r = 1; j && r < w; r++)
        for (size_t i = 0; i < j->n; i++)
            lab_want(k, memcmp(&j->v[r][i], &j->v[0][i], 4) == 0,
                     "%d workers, n = %zu: v[%zu] is %.9g on worker %d and "
                     "%.9g on worker 0",
                     w, n, i, (double)j->v[r][i], r, (double)j->v[0][i]);
}

static void same(struct lab_case *k)
{
    for (int w = 2; w <= MOST_WORKERS; w++)
        want_same(k, 1000, w);
    if (lab_hidden(k))
        want_same(k, lab_pick(k, 1001, 5000), (int)lab_pick(k, 9, MOST_HIDDEN));
}

// Half the distance between neighbouring fp16 numbers near x. The distance is
// at least 2^-24.
static double half_unit(double x)
{
    int e;
    frexp(x, &e);
    return ldexp(1, (e < -13 ? -13 : e) - 12);
}

// SHORT numbers are exact in fp16. Numbers of ANY kind may be rounded before
// they are sent, once each. Scaling down by up to 2w makes fp16's smallest unit
// up to 2w times as large in the result.
static void error(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (enum kind kind = SHORT; kind <= ANY; kind++) {
            const struct job *j = exchanged(k, kind, 1000, w, NULL);
            double worst = 0;
            for (size_t i = 0; j && i < j->n; i++) {
                double sum = sum_of(j, w, i), most = half_unit(sum);
                for (int r = 0; r < w && kind == ANY; r++)
                    most += half_unit((double)number(ANY, r, i));
                most *= 1 + 1e-3;
                if (kind == ANY) // fp16's smallest unit, scaled up
                    most += 2. * w * (w + 1) * 0x1p-25;
                double is = fabs((double)j->v[0][i] - sum);
                worst = fmax(worst, is);
                lab_want(k, is <= most,
                         "%d workers: v[%zu] is %.9g, the sum is %.9g: the "
                         "error is %g, rounding explains at most %g",
                         w, i, (double)j->v[0][i], sum, is, most);
            }
            lab_record(k, w, 1000,
                       kind == ANY ? "largest_error" : "error_of_short", worst);
        }
}

static struct job *stepped(struct lab_case *k, int w, const char *history,
                           struct loss_scale begin, float unit, float odd)
{
    struct lab_world world = {.workers = w};
    struct job *j = lab_failed(k) ? NULL : job_of(k, WHOLE, 12, w);
    if (!j)
        return NULL;
    j->history = history;
    j->unit = unit;
    j->odd = odd;
    for (int r = 0; r < w; r++)
        j->scale[r] = begin;
    return lab_clean(k, lab_virtual(k, &world, steps, j)) ? j : NULL;
}

static void skips(struct lab_case *k)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f};
    for (int w = 1; w <= 5; w++)
        for (int o = 0; o < 4; o++) {
            const char *history = "x.xxx.xxxx.";
            // The scale is 8 before the last step, and 16 after it.
            struct loss_scale begin = {512, 0, 1};
            struct job *j = stepped(k, w, history, begin, 1, odd[o]);
            for (int r = 0; j && r < w; r++) {
                for (size_t t = 0; history[t]; t++)
                    lab_want(k, j->skip[r][t] == (history[t] == 'x'),
                             "%d workers, step %zu: worker %d %s, worker %d "
                             "has %s%g",
                             w, t, r, j->skip[r][t] ? "skips" : "does not skip",
                             (int)(t % (size_t)w),
                             history[t] == 'x' ? "" : "no ", (double)odd[o]);
                for (size_t i = 0; i < j->n; i++) {
                    double mean = sum_of(j, w, i) / w;
                    lab_want(k, fabs((double)j->v[r][i] / mean - 1) < 1e-6,
                             "%d workers, a step without overflow: g[%zu] of "
                             "worker %d is %.9g, the mean without the scale "
                             "is %.9g",
                             w, i, r, (double)j->v[r][i], mean);
                }
            }
        }
}

// log2 of the scale after each step: 'a' is 0, 'b' is 1.
static const struct {
    int window;
    char begin;
    const char *history, *scales;
} histories[] = {
    {2, 'e', "......", "effggh"},   {2, 'c', "xxxx", "baaa"},
    {2, 'f', ".x.x.x", "feeddc"},   {2, 'f', "..x..x", "fgffgf"},
    {3, 'f', "...x...", "ffgfffg"}, {3, 'f', ".x..x...", "feeeddde"},
    {1, 'x', "...", "yyy"},         {1, 'y', "x..", "xyy"},
    {1, 'a', "x.x", "aba"},         {2, 'd', "x.x..", "ccbbc"},
};

static void scale(struct lab_case *k)
{
    for (size_t h = 0; h < sizeof histories / sizeof *histories; h++) {
        struct loss_scale begin = {ldexpf(1, histories[h].begin - 'a'), 0,
                                   histories[h].window};
        const char *history = histories[h].history;
        // The numbers are so small that they do not overflow at any scale.
        struct job *j = stepped(k, 2, history, begin, 0x1p-20f, INFINITY);
        for (int r = 0; j && r < 2; r++)
            for (size_t t = 0; history[t]; t++) {
                float ought = ldexpf(1, histories[h].scales[t] - 'a');
                lab_want(k, j->seen[r][t] == ought,
                         "window %d, first scale %g, history %s (x: overflow): "
                         "after step %zu the scale of worker %d is %g, not %g",
                         histories[h].window, (double)begin.scale, history, t,
                         r, (double)j->seen[r][t], (double)ought);
            }
    }
}

static const struct lab_test tests[] = {
    {"sums", 10, sums, NULL,
     "Small whole numbers fit into fp16. If they do not add exactly for three "
     "workers, what do you multiply by?"},
    {"bytes", 15, bytes, "sums",
     "Send numbers and sums as uint16_t. Send nothing to yourself."},
    {"large", 10, large, "bytes",
     "4 times 40000 is too large for fp16. Multiply by 1/4 before you "
     "round."},
    {"same", 10, same, "bytes",
     "The other workers get the owner's sums rounded. Which sums does the "
     "owner use?"},
    {"error", 10, error, "bytes",
     "Add in fp32. Round each number once before it leaves, and each sum "
     "once."},
    {"skip", 5, skips, "bytes",
     "Test the sum, not your own gradients: all workers have the same sum."},
    {"scale", 10, scale, "skip",
     "Write down scale and good after each step of the history that the test "
     "names."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 6,
    .name = "sixteen bits on the wire",
    .file = "narrow.c",
    .functions = "lab_exchange lab_step",
    .floor = 10,
    .tests = tests,
};
