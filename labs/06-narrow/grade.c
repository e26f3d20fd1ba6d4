// grade.c - lab 6: the tests of a 16-bit exchange and its loss scale.
//
// Sums are compared with sums in double. The loss scale is followed by its
// exponent.

#include "labs/06-narrow/narrow.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { MOST_WORKERS = 8, MOST_HIDDEN = 20, STEPS = 16 };

static const size_t sizes[] = {1, 2, 7, 64, 1000};

enum { SIZES = sizeof sizes / sizeof *sizes };

enum kind { WHOLE, LARGE, ONE_LARGE, SHORT, ANY, TINY };

struct job {
    enum kind kind;
    size_t n;
    float *v[MOST_HIDDEN];
    // For the tests of lab_step().
    const char *history; // 'x': an overflow
    float odd;           // the number that overflows
    float unit;          // a factor of gradients in steps, and of TINY numbers
    struct loss_scale scale[MOST_HIDDEN];
    float seen[MOST_HIDDEN][STEPS]; // the scale after each step
    bool skip[MOST_HIDDEN][STEPS];
};

static float number(const struct job *j, int rank, size_t i)
{
    uint64_t key = rng_key(6, (uint64_t)rank);
    switch (j->kind) {
    case LARGE:
        return 40000;
    case ONE_LARGE: // on one worker: too large for fp16, which the mean is not
        return rank ? 3 : 120000;
    case SHORT: // eleven bits: exact in fp16
        return 1 + floorf(1024 * (float)rng_uniform(key, i)) / 1024;
    case ANY:
        return (float)rng_normal(key, i);
    case TINY: // odd multiples of fp16's smallest number, after the factor
        return (float)(2 * (i % 50) + 1) * j->unit;
    default:
        return (float)((rank % 8 + 1) * (1 + (int)(i % 13)));
    }
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    float *v = j->v[l->rank];
    for (size_t i = 0; i < j->n; i++)
        v[i] = number(j, l->rank, i);
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
            v[i] = number(j, l->rank, i) * j->unit * s->scale;
        if (j->history[t] == 'x' && (size_t)l->rank == t % (size_t)l->workers)
            v[(j->n - 1 + t * 5) % j->n] = j->odd;
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

// Runs an exchange. Returns its job, or NULL if it failed. If `run` is not
// NULL, *run becomes the run.
static const struct job *exchanged(struct lab_case *k, enum kind kind, size_t n,
                                   struct lab_world world,
                                   const struct lab_run **run)
{
    struct job *j = lab_failed(k) ? NULL : job_of(k, kind, n, world.workers);
    if (!j)
        return NULL;
    j->unit = ldexpf(1, (int)ceil(log2(world.workers)) - 24);
    const struct lab_run *its = lab_virtual(k, &world, body, j);
    if (run)
        *run = its;
    return lab_clean(k, its) ? j : NULL;
}

static struct lab_world usual(int w)
{
    return (struct lab_world){.workers = w};
}

// The cluster of a hidden case of any test, and its size.
static struct lab_world hidden_world(const struct lab_case *k)
{
    return lab_drawn(k, (int)lab_pick(k, 9, MOST_HIDDEN));
}

static size_t hidden_size(const struct lab_case *k)
{
    return lab_pick(k, 1001, 9999);
}

static double sum_of(const struct job *j, int w, size_t i)
{
    double sum = 0;
    for (int r = 0; r < w; r++)
        sum += (double)number(j, r, i);
    return sum;
}

// Sums numbers of a kind that adds exactly, and checks the sums: of very long
// vectors not all. Returns NULL if the test has failed.
static const struct lab_run *want_sums(struct lab_case *k, enum kind kind,
                                       size_t n, struct lab_world world)
{
    const struct lab_run *run;
    const struct job *j = exchanged(k, kind, n, world, &run);
    int w = world.workers;
    for (int r = 0; j && r < w; r++)
        for (size_t i = 0; i < n; i += 1 + n / 300000)
            if (!lab_want(k, (double)j->v[r][i] == sum_of(j, w, i),
                          "%d workers, n = %zu: v[%zu] of worker %d is %.9g, "
                          "the sum is %.9g",
                          w, n, i, r, (double)j->v[r][i], sum_of(j, w, i)))
                return NULL;
    return j ? run : NULL;
}

static void sums(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int b = 0; b < SIZES; b++)
            want_sums(k, WHOLE, sizes[b], usual(w));
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k);
        if (i == 1) // then 1/w is the power of two
            world.workers = 2 << lab_pick(k, 0, 3);
        want_sums(k, i < 2 ? TINY : WHOLE, hidden_size(k), world);
    }
    if (lab_hidden(k)) // longer than 2^16 a part
        want_sums(k, WHOLE, lab_pick(k, 140000, 199999), usual(2));
}

static void want_bytes(struct lab_case *k, size_t n, struct lab_world world,
                       bool record)
{
    const struct lab_run *run = want_sums(k, WHOLE, n, world);
    size_t w = (size_t)world.workers;
    for (size_t r = 0; run && r < w; r++) {
        size_t c = (size_t)lab_place(LAB_OWN, (int)r, (int)w);
        size_t own = n * (c + 1) / w - n * c / w;
        size_t law = 2 * (n - own + (w - 1) * own);
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        if (record)
            lab_record(k, (int)w, n, "bytes_out", (double)out);
        lab_want(k, out == law && in == law,
                 "%zu workers, n = %zu: worker %zu, which owns %zu, sent %zu "
                 "bytes and received %zu, the formula gives %zu",
                 w, n, r, own, out, in, law);
    }
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int b = 0; b < SIZES; b++)
            want_bytes(k, sizes[b], usual(w), b == SIZES - 1);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k);
        want_bytes(k, hidden_size(k), world, false);
    }
    if (lab_hidden(k)) // a float does not count so many elements
        want_bytes(k, (1 << 24) + 3, usual(3), false);
}

static void want_large(struct lab_case *k, enum kind kind, size_t n,
                       struct lab_world world)
{
    const struct job *j = exchanged(k, kind, n, world, NULL);
    int w = world.workers;
    for (int r = 0; j && r < w; r++)
        for (size_t i = 0; i < n; i++)
            lab_want(k, fabs((double)j->v[r][i] / sum_of(j, w, i) - 1) < 2e-3,
                     "%g on %s of %d workers: the sum on worker %d is %g, not "
                     "%g",
                     (double)number(j, 0, i),
                     kind == ONE_LARGE ? "one" : "each", w, r,
                     (double)j->v[r][i], sum_of(j, w, i));
}

static void large(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_large(k, LARGE, 10, usual(w));
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k);
        world.workers = i == 1 ? 2 : world.workers;
        want_large(k, i ? ONE_LARGE : LARGE, hidden_size(k), world);
    }
}

static void want_same(struct lab_case *k, size_t n, struct lab_world world)
{
    const struct job *j = exchanged(k, ANY, n, world, NULL);
    int w = world.workers;
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
        want_same(k, 1000, usual(w));
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k);
        want_same(k, hidden_size(k), world);
    }
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
static void want_error(struct lab_case *k, enum kind kind, size_t n,
                       struct lab_world world)
{
    const struct job *j = exchanged(k, kind, n, world, NULL);
    int w = world.workers;
    double worst = 0;
    for (size_t i = 0; j && i < n; i++) {
        double sum = sum_of(j, w, i), most = half_unit(sum);
        for (int r = 0; r < w && kind == ANY; r++)
            most += half_unit((double)number(j, r, i));
        most *= 1 + 1e-3;
        if (kind == ANY) // fp16's smallest unit, scaled up
            most += 2. * w * (w + 1) * 0x1p-25;
        double is = fabs((double)j->v[0][i] - sum);
        worst = fmax(worst, is);
        lab_want(k, is <= most,
                 "%d workers: v[%zu] is %.9g, the sum is %.9g: the error is "
                 "%g, rounding explains at most %g",
                 w, i, (double)j->v[0][i], sum, is, most);
    }
    lab_record(k, w, n, kind == ANY ? "largest_error" : "error_of_short",
               worst);
}

static void error(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (enum kind kind = SHORT; kind <= ANY; kind++)
            want_error(k, kind, 1000, usual(w));
    for (enum kind kind = SHORT; kind <= ANY && lab_hidden(k); kind++) {
        struct lab_world world = hidden_world(k);
        want_error(k, kind, hidden_size(k), world);
    }
}

static struct job *stepped(struct lab_case *k, struct lab_world world, size_t n,
                           const char *history, struct loss_scale begin,
                           float unit, float odd)
{
    int w = world.workers;
    struct job *j = lab_failed(k) ? NULL : job_of(k, WHOLE, n, w);
    if (!j)
        return NULL;
    j->history = history;
    j->unit = unit;
    j->odd = odd;
    for (int r = 0; r < w; r++)
        j->scale[r] = begin;
    return lab_clean(k, lab_virtual(k, &world, steps, j)) ? j : NULL;
}

// With the usual first scale, the scale is 8 before the last step, and 16 after
// it.
static void want_skips(struct lab_case *k, struct lab_world world, size_t n,
                       float first_scale, float unit, float odd)
{
    const char *history = "x.xxx.xxxx.";
    struct loss_scale begin = {first_scale, 0, 1};
    struct job *j = stepped(k, world, n, history, begin, unit, odd);
    int w = world.workers;
    for (int r = 0; j && r < w; r++) {
        for (size_t t = 0; history[t]; t++)
            lab_want(k, j->skip[r][t] == (history[t] == 'x'),
                     "%d workers, step %zu: worker %d %s, worker %d has %s%g",
                     w, t, r, j->skip[r][t] ? "skips" : "does not skip",
                     (int)(t % (size_t)w), history[t] == 'x' ? "" : "no ",
                     (double)odd);
        for (size_t i = 0; i < j->n; i++) {
            double mean = sum_of(j, w, i) * (double)unit / w;
            lab_want(k, fabs((double)j->v[r][i] / mean - 1) < 1e-6,
                     "%d workers, a step without overflow: g[%zu] of worker %d "
                     "is %.9g, the mean without the scale is %.9g",
                     w, i, r, (double)j->v[r][i], mean);
        }
    }
}

static void skips(struct lab_case *k)
{
    static const float odd[] = {INFINITY, -INFINITY, NAN, 3e38f};
    for (int w = 1; w <= 5; w++)
        for (int o = 0; o < 4; o++)
            want_skips(k, usual(w), 12, 512, 1, odd[o]);
    // Gradients that are too small for fp16 without the scale.
    for (int o = 0; o < 4 && lab_hidden(k); o++) {
        struct lab_world world = lab_drawn(k, 6 - o);
        want_skips(k, world, 5000, 0x1p20f, 0x1p-22f, odd[o]);
    }
}

// The first scale is 2^begin.
static const struct {
    int window, begin;
    const char *history;
} histories[] = {
    {2, 4, "......"},  {2, 2, "xxxx"},     {2, 5, ".x.x.x"}, {2, 5, "..x..x"},
    {3, 5, "...x..."}, {3, 5, ".x..x..."}, {1, 23, "..."},   {1, 24, "x.."},
    {1, 0, "x.x"},     {2, 3, "x.x.."},
};

// The exponent of the scale after a step. *row: good steps in a row.
static int follow(int exponent, bool overflow, int window, int *row)
{
    *row = overflow ? 0 : *row + 1;
    if (overflow)
        return exponent > LAB_SHRINK ? exponent - 1 - LAB_SHRINK : 0;
    if (*row < window)
        return exponent;
    *row = 0;
    return exponent + 1 + LAB_GROW < 24 ? exponent + 1 + LAB_GROW : 24;
}

// The first scale is 2^now.
static void want_scale(struct lab_case *k, struct lab_world world, int now,
                       int good, int window, const char *history)
{
    struct loss_scale begin = {ldexpf(1, now), good, window};
    // The numbers are so small that they do not overflow at any scale.
    struct job *j = stepped(k, world, 12, history, begin, 0x1p-20f, INFINITY);
    for (size_t t = 0; j && history[t]; t++) {
        now = follow(now, history[t] == 'x', window, &good);
        for (int r = 0; r < world.workers; r++)
            lab_want(k, j->seen[r][t] == ldexpf(1, now),
                     "window %d, first scale %g after %d good steps, history "
                     "%s (x: overflow): after step %zu the scale of worker %d "
                     "is %g, not %g",
                     window, (double)begin.scale, begin.good, history, t, r,
                     (double)j->seen[r][t], ldexp(1, now));
    }
}

static void scale(struct lab_case *k)
{
    struct lab_world world = usual(2);
    for (size_t h = 0; h < sizeof histories / sizeof *histories; h++)
        want_scale(k, world, histories[h].begin, 0, histories[h].window,
                   histories[h].history);
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        char history[STEPS] = "";
        int window = (int)(i ? lab_pick(k, 1, 4) : lab_pick(k, 258, 2000));
        for (uint64_t t = 0; t < STEPS - 1; t++)
            history[t] = t > 3 && lab_draw(k, t, 3) == 0 ? 'x' : '.';
        world = lab_drawn(k, 3 + i % 2);
        want_scale(k, world, (int)lab_pick(k, 0, 24),
                   window - 1 - (int)lab_pick(k, 0, 1) * (window > 1), window,
                   history);
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
