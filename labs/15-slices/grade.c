// grade.c - lab 15: the tests of an MLP that is cut into slices.
//
// The expected numbers come from one worker that has the whole matrices. All
// numbers are small multiples of a power of two, so that sums are exact in
// whatever order they are added. Shares are judged by what must hold of them.

#include "labs/15-slices/slices.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <string.h>

enum { MOST_WORKERS = 8, MOST_HIDDEN = 16 };

// ---- slice_shares()

// Whether `a` units of a worker of speed x are finished before `b` units of one
// of speed y; of equals, whether the first worker comes first.
static bool sooner(size_t a, int x, size_t b, int y, bool first)
{
    size_t p = a * (size_t)y, q = b * (size_t)x;
    return p < q || (p == q && first);
}

// The units were dealt out one by one exactly if each worker with units would
// have lost its last one to nobody.
static void want_shares(struct lab_case *k, const int *speed, int w,
                        size_t units)
{
    size_t share[MOST_HIDDEN] = {0}, sum = 0;
    slice_shares(speed, w, units, share);
    for (int r = 0; r < w; r++)
        sum += share[r];
    lab_want(k, sum == units, "%d workers: %zu of %zu units are dealt out", w,
             sum, units);
    for (int r = 0; r < w; r++)
        for (int o = 0; o < w; o++) {
            bool first =
                lab_place(LAB_SHARE, r, w) < lab_place(LAB_SHARE, o, w);
            lab_want(k,
                     o == r || share[r] == 0 ||
                         sooner(share[r], speed[r], share[o] + 1, speed[o],
                                first),
                     "%d workers, %zu units: worker %d of speed %d has %zu, "
                     "and worker %d of speed %d only %zu: the last unit goes "
                     "to worker %d",
                     w, units, r, speed[r], share[r], o, speed[o], share[o], o);
        }
}

static void shares(struct lab_case *k)
{
    static const int speeds[][6] = {{1, 1, 1, 1, 1, 1},
                                    {2, 1, 1, 3, 2, 1},
                                    {10, 1, 7, 7, 1, 10},
                                    {1, 2, 4, 8, 16, 32}};
    for (int s = 0; s < 4; s++)
        for (int w = 1; w <= 6; w++)
            for (size_t units = 0; units < 40; units += 1 + units / 8)
                want_shares(k, speeds[s], w, units);
    for (int i = 0; i < 6 && lab_hidden(k); i++) {
        int speed[MOST_HIDDEN], w = (int)lab_pick(k, 7, MOST_HIDDEN);
        for (int r = 0; r < w; r++)
            speed[r] = 1 + (int)rng_below(lab_pick(k, 0, 1 << 20), (uint64_t)r,
                                          i % 2 ? 1000000000 : 5);
        want_shares(k, speed, w, lab_pick(k, 50, 60000));
    }
    if (lab_hidden(k)) { // a float takes these speeds for equal
        want_shares(k, (int[]){1 << 24, (1 << 24) + 1}, 2, 1);
        want_shares(k, (int[]){1, 49}, 2, 49); // 49 * (1 / 49.) is below 1
    }
}

// ---- the join

struct vectors {
    size_t n;
    bool normal; // numbers whose sum depends on the order of adding
    float *v[MOST_HIDDEN];
};

static float number(const struct vectors *j, int rank, size_t i)
{
    if (j->normal)
        return (float)rng_normal(rng_key(15, (uint64_t)rank), i);
    return (float)((rank + 1) * 10 + (int)(i % 97));
}

static int exchange(struct lab *l, void *arg)
{
    struct vectors *j = arg;
    for (size_t i = 0; i < j->n; i++)
        j->v[l->rank][i] = number(j, l->rank, i);
    return lab_exchange(l, j->v[l->rank], j->n);
}

// Joins vectors. Returns NULL if it failed.
static const struct lab_run *joined(struct lab_case *k, struct vectors *j,
                                    struct lab_world world, size_t n,
                                    bool normal)
{
    *j = (struct vectors){.n = n, .normal = normal};
    for (int r = 0; r < world.workers; r++)
        if (lab_failed(k) || !(j->v[r] = lab_memory(k, n + 1, sizeof(float))))
            return NULL;
    const struct lab_run *run = lab_virtual(k, &world, exchange, j);
    return lab_clean(k, run) ? run : NULL;
}

// Joins vectors of whole numbers, and checks the sums. Returns NULL if the test
// has failed.
static const struct lab_run *want_sums(struct lab_case *k,
                                       struct lab_world world, size_t n)
{
    struct vectors j;
    const struct lab_run *run = joined(k, &j, world, n, false);
    int w = world.workers;
    for (int r = 0; run && r < w; r++)
        for (size_t i = 0; i < n; i++) {
            float sum = 0;
            for (int o = 0; o < w; o++)
                sum += number(&j, o, i);
            if (!lab_want(k, j.v[r][i] == sum,
                          "%d workers, n = %zu: v[%zu] of worker %d is %g, the "
                          "sum is %g",
                          w, n, i, r, (double)j.v[r][i], (double)sum))
                return NULL;
        }
    return run;
}

static void want_join(struct lab_case *k, struct lab_world world, size_t n)
{
    struct vectors j;
    int w = world.workers;
    if (want_sums(k, world, n) && joined(k, &j, world, n, true))
        for (int r = 1; r < w; r++)
            for (size_t i = 0; i < n; i++)
                lab_want(k, memcmp(&j.v[r][i], &j.v[0][i], 4) == 0,
                         "%d workers, n = %zu: v[%zu] is %.9g on worker %d and "
                         "%.9g on worker 0",
                         w, n, i, (double)j.v[r][i], r, (double)j.v[0][i]);
}

static struct lab_world usual(int w)
{
    return (struct lab_world){.workers = w,
                              .alpha_s = 20e-6,
                              .bytes_per_s = 1.25e8};
}

// The cluster of a hidden case number i of any test.
static struct lab_world hidden_world(const struct lab_case *k, int i)
{
    return lab_drawn(k, i ? MOST_HIDDEN : (int)lab_pick(k, 9, MOST_HIDDEN - 1));
}

static void join(struct lab_case *k)
{
    static const size_t sizes[] = {0, 1, 7, 1000};
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (int s = 0; s < 4; s++)
            want_join(k, usual(w), sizes[s]);
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k, i);
        size_t n = lab_pick(k, 100, 500) * (size_t)world.workers;
        want_join(k, world, n + (size_t)i); // `time` has sizes that w divides
    }
    if (lab_hidden(k)) // longer than 2^16 a part
        want_join(k, usual(2), lab_pick(k, 140000, 199999));
}

// ---- the layer

// A layer with the whole matrices, and the slices and results of each worker.
struct layer {
    size_t rows, width, hidden, first[MOST_HIDDEN + 1];
    float *x, *a, *b, *c, *dy;        // whole
    float *h, *y, *dx, *da, *db, *dc; // expected, whole
    bool back;                        // also run backward
    struct {
        float *a, *b, *h, *y, *dx, *da, *db, *dc;
    } of[MOST_HIDDEN];
    double between[MOST_HIDDEN]; // seconds at which forward ended
    uint64_t bytes[MOST_HIDDEN]; // sent forward
};

// n whole numbers, times `unit`.
static float *filled(struct lab_case *k, uint64_t name, size_t n, float unit)
{
    float *v = lab_memory(k, n + 1, sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        v[i] = ((float)rng_below(rng_key(1500, name), i, 5) - 2) * unit;
    return v;
}

static float act(float z)
{
    static const float below[] = {0, 0.25f, 0.5f};
    return z > 0 ? z : z * below[LAB_ACT];
}

// What one worker with the whole matrices computes.
static void expect(struct layer *t)
{
    size_t width = t->width, hidden = t->hidden;
    for (size_t i = 0; i < t->rows * width; i++) {
        t->y[i] = t->c[i % width] + (float)LAB_RESIDUAL * t->x[i];
        t->dx[i] = (float)LAB_RESIDUAL * t->dy[i];
        t->dc[i % width] += t->dy[i];
    }
    for (size_t i = 0; i < t->rows; i++)
        for (size_t k = 0; k < hidden; k++) {
            float z = 0, slope = 0;
            for (size_t j = 0; j < width; j++) {
                z += t->x[i * width + j] * t->a[j * hidden + k];
                slope += t->dy[i * width + j] * t->b[k * width + j];
            }
            t->h[i * hidden + k] = act(z);
            slope *= z > 0 ? 1 : -act(-1);
            for (size_t j = 0; j < width; j++) {
                t->y[i * width + j] += act(z) * t->b[k * width + j];
                t->db[k * width + j] += act(z) * t->dy[i * width + j];
                t->dx[i * width + j] += slope * t->a[j * hidden + k];
                t->da[j * hidden + k] += slope * t->x[i * width + j];
            }
        }
}

// Copies columns first .. first+n-1 of a matrix of `all` columns.
static void columns(float *out, const float *in, size_t rows, size_t all,
                    size_t first, size_t n)
{
    for (size_t i = 0; i < rows; i++)
        memcpy(out + i * n, in + i * all + first, n * sizeof *out);
}

static bool worker_open(struct lab_case *k, struct layer *t, int r)
{
    size_t own = t->first[r + 1] - t->first[r], all = t->rows * t->width;
    size_t sizes[] = {t->width * own, t->width * own, t->rows * own, all, all,
                      t->width * own, t->width * own, t->width};
    float **of[] = {&t->of[r].a,  &t->of[r].b,  &t->of[r].h,  &t->of[r].y,
                    &t->of[r].dx, &t->of[r].da, &t->of[r].db, &t->of[r].dc};
    for (int i = 0; i < 8; i++) {
        if (!(*of[i] = lab_memory(k, sizes[i] + 1, sizeof(float))))
            return false;
        memset(*of[i], 0xff, sizes[i] * sizeof(float)); // NaN
    }
    columns(t->of[r].a, t->a, t->width, t->hidden, t->first[r], own);
    memcpy(t->of[r].b, t->b + t->first[r] * t->width,
           own * t->width * sizeof(float));
    return true;
}

// A layer whose worker r has every (r + 2)nd hidden number or so: slices are
// unequal, and with few hidden numbers some are empty.
static struct layer *layer_open(struct lab_case *k, int w, size_t rows,
                                size_t width, size_t hidden, float unit)
{
    struct layer *t = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof *t);
    if (!t)
        return NULL;
    size_t all = (size_t)w * ((size_t)w + 1) / 2;
    t->rows = rows;
    t->width = width;
    t->hidden = hidden;
    for (size_t r = 0; r <= (size_t)w; r++)
        t->first[r] = hidden * (r * (r + 1) / 2) / all;
    t->x = filled(k, 0, rows * width, unit / 2);
    t->a = filled(k, 1, width * hidden, 1);
    t->b = filled(k, 2, hidden * width, 1);
    t->c = filled(k, 3, width, unit);
    t->dy = filled(k, 4, rows * width, unit);
    t->h = lab_memory(k, rows * hidden + 1, sizeof(float));
    t->y = lab_memory(k, rows * width, sizeof(float));
    t->dx = lab_memory(k, rows * width, sizeof(float));
    t->da = lab_memory(k, width * hidden + 1, sizeof(float));
    t->db = lab_memory(k, width * hidden + 1, sizeof(float));
    t->dc = lab_memory(k, width, sizeof(float));
    bool whole = t->x && t->a && t->b && t->c && t->dy && t->h && t->y &&
                 t->dx && t->da && t->db && t->dc;
    for (int r = 0; whole && r < w; r++)
        whole = worker_open(k, t, r);
    if (whole)
        expect(t);
    return whole ? t : NULL;
}

static int body(struct lab *l, void *arg)
{
    struct layer *t = arg;
    int r = l->rank;
    struct mlp m = {t->rows, t->width, t->first[r + 1] - t->first[r]};
    int err = slice_forward(l, &m, t->x, t->of[r].a, t->of[r].b, t->c,
                            t->of[r].h, t->of[r].y);
    t->between[r] = lab_now(l);
    lab_release(l);
    return err || !t->back
               ? err
               : slice_backward(l, &m, t->x, t->of[r].a, t->of[r].b, t->of[r].h,
                                t->dy, t->of[r].dx, t->of[r].da, t->of[r].db,
                                t->of[r].dc);
}

static const struct lab_run *ran(struct lab_case *k, struct layer *t,
                                 struct lab_world world, bool back)
{
    if (!t || lab_failed(k))
        return NULL;
    t->back = back;
    const struct lab_run *run = lab_virtual(k, &world, body, t);
    return lab_clean(k, run) ? run : NULL;
}

// Compares rows * n numbers of a worker with columns first .. first+n-1 of the
// expected matrix.
static void want_equal(struct lab_case *k, const struct layer *t, int w, int r,
                       const char *name, const float *is, const float *ought,
                       size_t rows, size_t all, size_t first, size_t n)
{
    for (size_t i = 0; i < rows * n; i++) {
        float right = ought[i / n * all + first + i % n];
        lab_want(k, is[i] == right,
                 "%d workers, %zu rows, width %zu, %zu hidden numbers, of "
                 "which worker %d has %zu: %s[%zu] of worker %d is %g, not %g",
                 w, t->rows, t->width, t->hidden, r,
                 t->first[r + 1] - t->first[r], name, i, r, (double)is[i],
                 (double)right);
    }
}

// Checks a layer's results. Returns NULL if the test has failed.
static const struct lab_run *want_layer(struct lab_case *k,
                                        struct lab_world world, size_t rows,
                                        size_t width, size_t hidden, float unit,
                                        bool back)
{
    int w = world.workers;
    struct layer *t = layer_open(k, w, rows, width, hidden, unit);
    const struct lab_run *run = ran(k, t, world, back);
    for (int r = 0; run && r < w; r++) {
        size_t at = t->first[r], own = t->first[r + 1] - at;
        if (!back) {
            want_equal(k, t, w, r, "h", t->of[r].h, t->h, rows, hidden, at,
                       own);
            want_equal(k, t, w, r, "y", t->of[r].y, t->y, rows, width, 0,
                       width);
            continue;
        }
        want_equal(k, t, w, r, "dx", t->of[r].dx, t->dx, rows, width, 0, width);
        want_equal(k, t, w, r, "da", t->of[r].da, t->da, width, hidden, at,
                   own);
        want_equal(k, t, w, r, "db", t->of[r].db, t->db + at * width, own,
                   width, 0, width);
        want_equal(k, t, w, r, "dc", t->of[r].dc, t->dc, 1, width, 0, width);
    }
    return lab_failed(k) ? NULL : run;
}

static const size_t shapes[][3] = {{1, 1, 1},
                                   {2, 3, 4},
                                   {5, 4, 20},
                                   {7, 12, 33}};

static void layers(struct lab_case *k, bool back)
{
    for (int w = 1; w <= 6; w++)
        for (int s = 0; s < 4; s++)
            want_layer(k, usual(w), shapes[s][0], shapes[s][1], shapes[s][2], 1,
                       back);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        float unit = i == 1 ? 1 : 1 / (float)(1 << lab_pick(k, 2, 30));
        want_layer(k, hidden_world(k, i % 2), lab_pick(k, 8, 40),
                   lab_pick(k, 5, 60), lab_pick(k, 40, 150), unit, back);
    }
    if (lab_hidden(k)) // a byte does not count so many
        want_layer(k, usual(2), lab_pick(k, 260, 500), 3, 7, 1, back);
    if (lab_hidden(k)) // nor so many, and sums are large
        want_layer(k, usual(3), 4, lab_pick(k, 300, 400), lab_pick(k, 600, 900),
                   1, back);
}

static void forward(struct lab_case *k)
{
    layers(k, false);
}

static void backward(struct lab_case *k)
{
    layers(k, true);
}

// What a worker sends and receives in one join of n elements.
static size_t law(size_t n, int w, int r)
{
    size_t all = (size_t)w, own = 0;
    for (size_t i = 0; i < n; i++) // element i is in the part of its owner
        own += i >= n * (size_t)r / all && i < n * (size_t)(r + 1) / all;
    return 4 * (n - own + (all - 1) * own);
}

// Checks the bytes of `joins` joins of n elements.
static void want_law(struct lab_case *k, const struct lab_run *run, int w,
                     size_t n, size_t joins)
{
    for (int r = 0; run && r < w; r++) {
        size_t ought = law(n, w, r) * joins;
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        lab_record(k, w, n, joins == 2 ? "both_bytes" : "forward_bytes",
                   (double)out);
        lab_want(k, out == ought && in == ought,
                 "%d workers, joins of %zu elements: worker %d sent %zu bytes "
                 "and received %zu, %s %zu",
                 w, n, r, out, in,
                 joins == 2 ? "forward and backward two joins move"
                            : "one join moves",
                 ought);
    }
}

static void want_bytes(struct lab_case *k, struct lab_world world, size_t rows,
                       size_t width, size_t hidden)
{
    for (int back = 0; back < 2; back++)
        want_law(k, want_layer(k, world, rows, width, hidden, 1, back),
                 world.workers, rows * width, 1 + (size_t)back);
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_bytes(k, usual(w), 11, 13, 24);
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_bytes(k, hidden_world(k, i), lab_pick(k, 8, 40),
                   lab_pick(k, 5, 60), lab_pick(k, 40, 150));
    size_t n = 16 * lab_pick(k, 70000, 75000) + 1;
    struct vectors j;
    if (lab_hidden(k)) // n * 15 / 16 is not exact in a float
        want_law(k, joined(k, &j, usual(16), n, false), 16, n, 1);
}

static void want_time(struct lab_case *k, struct lab_world world, size_t each)
{
    int w = world.workers;
    size_t n = each * (size_t)w;
    const struct lab_run *run = want_sums(k, world, n);
    if (!run)
        return;
    double ought =
        2 * (w - 1) * (world.alpha_s + 4. * (double)each / world.bytes_per_s);
    lab_record(k, w, n, "join_seconds", run->v->seconds);
    lab_speed(k, run->v->seconds, ought,
              "%d workers, a join of %zu elements: took %.1f us, 2(w-1)(a + "
              "S/wB) is %.1f us",
              w, n, run->v->seconds * 1e6, ought * 1e6);
}

static void in_time(struct lab_case *k)
{
    for (int w = 2; w <= MOST_WORKERS; w++)
        for (size_t each = 10; each <= 1000; each *= 10)
            want_time(k, usual(w), each);
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_time(k, hidden_world(k, i), lab_pick(k, 100, 500));
}

static const struct lab_test tests[] = {
    {"shares", 10, shares, NULL,
     "Compare (share + 1) / speed of two workers without dividing: whole "
     "numbers are not rounded."},
    {"join", 10, join, NULL,
     "Every element has one owner, who adds it for all. Then all have the same "
     "bits."},
    {"forward", 15, forward, "join",
     "h needs no message. What must be added to y only once?"},
    {"backward", 15, backward, "forward",
     "Which gradients need hidden numbers of other workers? Which of them does "
     "every worker have already?"},
    {"bytes", 10, bytes, "backward",
     "Each element is sent to its owner, and comes back from it. Nothing else "
     "travels."},
    {"time", 10, in_time, "join",
     "A worker can send to one worker and receive from another at the same "
     "time."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 15,
    .name = "slices of a layer",
    .file = "slices.c",
    .functions = "slice_shares lab_exchange slice_forward slice_backward",
    .floor = 10,
    .tests = tests,
};
