// grade.c - lab 11: the tests of a sharded optimiser.
//
// The expected parameters come from the training of one worker, written here
// without parts or messages. Gradients are small whole numbers: in whatever
// order they are added, the sums and the sums of squares are exact.

#include "labs/11-zero/zero.h"

#include "labs/check.h"
#include "labs/term.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 8, MOST_HIDDEN = 16 };

// A job in which one gradient may be huge, infinite or NaN.
struct task {
    struct zero zero;
    int odd_rank, odd_step; // the worker and step that have it; -1: none
    float odd;              // its value
};

static void gradients(const struct zero *z, int rank, int step, const float *p,
                      float *g)
{
    const struct task *t = (const struct task *)z;
    for (size_t i = 0; i < z->n; i++) {
        int seen = (int)floorf(p[i] * 8);
        g[i] =
            (float)((((int)i * 7 + rank * 5 + step * 3 + seen) % 13 + 13) % 13 -
                    4);
    }
    if (rank == t->odd_rank && step == t->odd_step)
        g[z->n / 2] = t->odd;
}

// A simplified Adam.
static void update(float *p, const float *g, float *a, float *b, size_t n,
                   float scale, int number)
{
    float x = 1 - powf(0.9f, (float)number), y = 1 - powf(0.99f, (float)number);
    for (size_t i = 0; i < n; i++) {
        float mean = g[i] * scale;
        a[i] = 0.9f * a[i] + 0.1f * mean;
        b[i] = 0.99f * b[i] + 0.01f * mean * mean;
        p[i] -= 0.1f * (a[i] / x) / (sqrtf(b[i] / y) + 1e-3f) + 0.01f * mean;
    }
}

static float first(size_t i)
{
    return (float)(i % 11) / 8;
}

// Trains one worker that has the gradients of all w workers.
static void alone(const struct zero *z, int w, float *p, float *memory)
{
    float *a = memory, *b = a + z->n, *sum = b + z->n, *g = sum + z->n;
    memset(memory, 0, 4 * z->n * sizeof *memory);
    for (size_t i = 0; i < z->n; i++)
        p[i] = first(i);
    int number = 1;
    for (int step = 0; step < z->steps; step++) {
        double squares = 0;
        for (int r = 0; r < w; r++) {
            gradients(z, r, step, p, g);
            for (size_t i = 0; i < z->n; i++)
                sum[i] = r ? sum[i] + g[i] : g[i];
        }
        for (size_t i = 0; i < z->n; i++)
            squares += (double)sum[i] * (double)sum[i];
        if (isfinite(squares))
            update(p, sum, a, b, z->n, zero_scale(z, squares, w), number);
        if (isfinite(squares) || LAB_SKIP_COUNTS)
            number++;
    }
}

struct job {
    struct task task;
    float *p[MOST_HIDDEN];
};

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    float *p = j->p[l->rank];
    for (size_t i = 0; i < j->task.zero.n; i++)
        p[i] = first(i);
    return zero_train(l, &j->task.zero, p);
}

static struct task task_of(size_t n, int steps)
{
    return (struct task){.zero = {.n = n,
                                  .steps = steps,
                                  .clip = 1e9,
                                  .gradients = gradients,
                                  .update = update},
                         .odd_rank = -1};
}

// Runs the task. Returns NULL if it failed.
static const struct lab_run *trained(struct lab_case *k, const struct task *t,
                                     int w, struct job **j)
{
    struct lab_world world = {.workers = w};
    *j = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof **j);
    if (!*j)
        return NULL;
    (*j)->task = *t;
    for (int r = 0; r < w; r++)
        if (!((*j)->p[r] = lab_memory(k, t->zero.n, sizeof(float))))
            return NULL;
    const struct lab_run *run = lab_virtual(k, &world, body, *j);
    return lab_clean(k, run) ? run : NULL;
}

static void want_alone(struct lab_case *k, const struct task *t, int w,
                       const char *what)
{
    struct job *j;
    if (!trained(k, t, w, &j))
        return;
    size_t n = t->zero.n;
    float *memory = lab_memory(k, 5 * n, sizeof *memory), *p = memory + 4 * n;
    if (!memory)
        return;
    alone(&t->zero, w, p, memory);
    for (int r = 0; r < w; r++)
        for (size_t i = 0; i < n; i++)
            lab_want(k, memcmp(&j->p[r][i], &p[i], sizeof *p) == 0,
                     "%d workers, n = %zu, %d steps%s: p[%zu] of worker %d is "
                     "%.9g, one worker alone gets %.9g",
                     w, n, t->zero.steps, what, i, r, (double)j->p[r][i],
                     (double)p[i]);
}

static void bits(struct lab_case *k)
{
    static const size_t sizes[] = {1, 5, 64, 1000};
    for (int w = 1; w <= 6; w++)
        for (int s = 0; s < 4; s++) {
            struct task t = task_of(sizes[s], 4);
            want_alone(k, &t, w, "");
        }
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct task t = task_of(lab_pick(k, 2, 3000), (int)lab_pick(k, 3, 9));
        want_alone(k, &t, (int)lab_pick(k, 7, MOST_HIDDEN), "");
    }
}

static void clips(struct lab_case *k)
{
    for (int w = 1; w <= 6; w++)
        for (double clip = 0.5; clip <= 128; clip *= 4) {
            struct task t = task_of(100, 4);
            t.zero.clip = clip;
            want_alone(k, &t, w, clip < 1 ? ", clip = 0.5" : ", clipped");
        }
}

static void overflow(struct lab_case *k)
{
    static const float odd[] = {INFINITY, NAN, -3e38f};
    for (int w = 1; w <= 6; w++)
        for (int o = 0; o < 3; o++) {
            struct task t = task_of(100, 4);
            t.odd_rank = w / 2;
            t.odd_step = o;
            // The square of 3e38 overflows a float, but not a double.
            t.odd = odd[o];
            want_alone(k, &t, w, ", one gradient is huge");
        }
}

// Parts are not equally long: a solution that cuts them by another formula
// sends or receives a different number of bytes.
static void want_bytes(struct lab_case *k, size_t n, int w, int steps)
{
    size_t all = (size_t)w;
    struct task t = task_of(n, steps);
    struct job *j;
    const struct lab_run *run = trained(k, &t, w, &j);
    for (size_t r = 0; run && r < all; r++) {
        size_t part = (size_t)lab_place(LAB_PART, (int)r, w);
        size_t own = n * (part + 1) / all - n * part / all;
        size_t law = (n - own + (all - 1) * own) * 4 + (all - 1) * 8;
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        law *= (size_t)steps;
        lab_record(k, w, n, "bytes_out", (double)out / steps);
        lab_want(k, out == law && in == law,
                 "%d workers, n = %zu, %d steps: worker %zu, which owns %zu, "
                 "sent %zu bytes and received %zu, not %zu",
                 w, n, steps, r, own, out, in, law);
    }
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_bytes(k, 121 * (size_t)w - 1, w, 3);
    for (int i = 0; i < 2 && lab_hidden(k); i++)
        want_bytes(k, lab_pick(k, 1000, 5000), (int)lab_pick(k, 9, MOST_HIDDEN),
                   2);
    if (lab_hidden(k)) // a float does not count so many elements
        want_bytes(k, (1 << 24) + 3, 3, 1);
}

static void memory(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++) {
        struct task t = task_of(840, 2);
        struct job *j;
        const struct lab_run *run = trained(k, &t, w, &j);
        size_t most = 840 * 8 + 12 * (size_t)(840 / w + 1) + 1024;
        for (int r = 0; run && r < w; r++) {
            size_t is = run->v->rank[r].alloc_peak;
            lab_record(k, w, 840, "lab_alloc_bytes", (double)is);
            lab_want(k, is <= most,
                     "%d workers, n = 840: worker %d has %zu bytes of "
                     "lab_alloc(), %zu are enough",
                     w, r, is, most);
        }
    }
}

static const struct lab_test tests[] = {
    {"bits", 20, bits, NULL,
     "Send the updated parameters after the update, and before the next "
     "gradients."},
    {"clip", 10, clips, "bits",
     "Each owner has the squares of its own part. The norm needs all of them."},
    {"overflow", 10, overflow, "clip",
     "Decide by a value that all workers have: the sum of all squares. Does a "
     "skipped step count as an update?"},
    {"bytes", 15, bytes, "bits",
     "Send a gradient to its owner, and to no other worker."},
    {"memory", 15, memory, "bytes",
     "Which of your vectors are as long as the model?"},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 11,
    .name = "shard the optimiser's state",
    .file = "zero.c",
    .functions = "zero_train",
    .floor = 20,
    .frame = 16384,
    .tests = tests,
};
