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
    struct zero zero; // the first member: its address is that of the task
    struct lab_world world;
    int odd_rank, odd_step; // the worker and step that have it; -1: none
    int again;              // another such step; -1: none
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
    if (rank == t->odd_rank && (step == t->odd_step || step == t->again))
        g[z->n / 2] = t->odd;
    if (rank == t->odd_rank && step == t->again)
        g[0] = 3e38f; // of another owner
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

// The squares of a worker's part of the sums.
static double squares_of(const struct zero *z, int w, int r, const float *sum)
{
    double squares = 0;
    for (size_t i = 0; i < z->n; i++) // element i is in the part of its owner
        if (i >= z->n * (size_t)r / (size_t)w &&
            i < z->n * ((size_t)r + 1) / (size_t)w)
            squares += (double)sum[i] * (double)sum[i];
    return squares;
}

static bool all_finite(const float *x, size_t n)
{
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all = all && isfinite(x[i]);
    return all;
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
        for (int r = 0; r < w; r++) {
            double its = squares_of(z, w, r, sum);
            squares = LAB_NORM == 1 ? fmax(squares, its) : squares + its;
        }
        squares /= LAB_NORM == 2 ? w : 1;
        bool finite = all_finite(sum, z->n);
        if (finite)
            update(p, sum, a, b, z->n, zero_scale(z, squares, w), number);
        if (finite || LAB_SKIP_COUNTS == 1)
            number++;
        else if (LAB_SKIP_COUNTS == 2)
            number = 1;
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

static struct task task_of(int w, size_t n, int steps)
{
    return (struct task){.zero = {.n = n,
                                  .steps = steps,
                                  .clip = 1e9,
                                  .gradients = gradients,
                                  .update = update},
                         .world = {.workers = w},
                         .odd_rank = -1,
                         .again = -1};
}

// Hidden case number i of any test. Case 0 has so many parameters that their
// state fits into no stack.
static struct task hidden_task(const struct lab_case *k, int i)
{
    struct task t = i ? task_of(0, lab_pick(k, 2, 3000), (int)lab_pick(k, 3, 9))
                      : task_of(0, lab_pick(k, 60000, 80000), 2);
    size_t w = i ? lab_pick(k, 7, MOST_HIDDEN) : lab_pick(k, 3, 6);
    t.world = lab_drawn(k, (int)w);
    return t;
}

// Runs the task. Returns NULL if it failed.
static const struct lab_run *trained(struct lab_case *k, const struct task *t,
                                     struct job **j)
{
    *j = lab_failed(k) ? NULL : lab_memory(k, 1, sizeof **j);
    if (!*j)
        return NULL;
    (*j)->task = *t;
    for (int r = 0; r < t->world.workers; r++)
        if (!((*j)->p[r] = lab_memory(k, t->zero.n, sizeof(float))))
            return NULL;
    const struct lab_run *run = lab_virtual(k, &t->world, body, *j);
    return lab_clean(k, run) ? run : NULL;
}

// Checks the parameters, too. Returns NULL if the test has failed.
static const struct lab_run *want_alone(struct lab_case *k, struct task t,
                                        const char *what)
{
    struct job *j;
    const struct lab_run *run = trained(k, &t, &j);
    size_t n = t.zero.n;
    int w = t.world.workers;
    float *memory = run ? lab_memory(k, 5 * n, sizeof *memory) : NULL;
    if (!memory)
        return NULL;
    float *p = memory + 4 * n;
    alone(&t.zero, w, p, memory);
    for (int r = 0; r < w; r++)
        for (size_t i = 0; i < n; i++)
            lab_want(k, memcmp(&j->p[r][i], &p[i], sizeof *p) == 0,
                     "%d workers, n = %zu, %d steps%s: p[%zu] of worker %d is "
                     "%.9g, one worker alone gets %.9g",
                     w, n, t.zero.steps, what, i, r, (double)j->p[r][i],
                     (double)p[i]);
    return lab_failed(k) ? NULL : run;
}

static void bits(struct lab_case *k)
{
    static const size_t sizes[] = {1, 5, 64, 1000};
    for (int w = 1; w <= 6; w++)
        for (int s = 0; s < 4; s++)
            want_alone(k, task_of(w, sizes[s], 4), "");
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_alone(k, hidden_task(k, i), "");
    if (lab_hidden(k)) // a byte does not count so many updates
        want_alone(k, task_of(2, 3, 300), "");
}

static void want_clipped(struct lab_case *k, struct task t, double clip)
{
    t.zero.clip = clip;
    want_alone(k, t, clip < 1 ? ", clip below 1" : ", clipped");
}

static void clips(struct lab_case *k)
{
    for (int w = 1; w <= 6; w++)
        for (double clip = 0.5; clip <= 128; clip *= 4)
            want_clipped(k, task_of(w, 100, 4), clip);
    for (int i = 1; i < 4 && lab_hidden(k); i++)
        want_clipped(k, hidden_task(k, i), 0.1 * (double)lab_pick(k, 1, 900));
}

// One gradient of a worker is odd in one step.
static void want_overflow(struct lab_case *k, struct task t, int rank, int step,
                          float odd)
{
    t.odd_rank = rank;
    t.odd_step = step;
    t.odd = odd;
    want_alone(k, t, ", one gradient is huge");
}

static void overflow(struct lab_case *k)
{
    // The square of 3e38 overflows a float, but not a double.
    static const float odd[] = {INFINITY, NAN, -3e38f};
    for (int w = 1; w <= 6; w++)
        for (int o = 0; o < 3; o++)
            want_overflow(k, task_of(w, 100, 4), w / 2, o, odd[o]);
    for (int i = 1; i < 4 && lab_hidden(k); i++) {
        struct task t = hidden_task(k, i);
        t.zero.steps = 6;
        t.again = i < 3 ? 4 : -1; // what is not finite is there twice
        want_overflow(k, t, (int)lab_pick(k, 0, 6), (int)lab_pick(k, 0, 2),
                      odd[i - 1]);
    }
}

// Parts are not equally long: a solution that cuts them by another formula
// sends or receives a different number of bytes.
static void want_law(struct lab_case *k, const struct lab_run *run,
                     const struct task *t)
{
    size_t all = run ? (size_t)run->v->ranks : 0, n = t->zero.n;
    size_t steps = (size_t)t->zero.steps;
    for (size_t r = 0; r < all; r++) {
        size_t part = (size_t)lab_place(LAB_PART, (int)r, (int)all);
        size_t own = n * (part + 1) / all - n * part / all;
        size_t law = (n - own + (all - 1) * own) * 4 + (all - 1) * 8;
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        law *= steps;
        lab_record(k, (int)all, n, "bytes_out", (double)(out / steps));
        lab_want(k, out == law && in == law,
                 "%zu workers, n = %zu, %zu steps: worker %zu, which owns %zu, "
                 "sent %zu bytes and received %zu, not %zu",
                 all, n, steps, r, own, out, in, law);
    }
}

static void want_bytes(struct lab_case *k, struct task t)
{
    want_law(k, want_alone(k, t, ""), &t);
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_bytes(k, task_of(w, 121 * (size_t)w - 1, 3));
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_bytes(k, hidden_task(k, i));
    if (lab_hidden(k)) { // a float does not count so many elements
        struct task t = task_of(3, (1 << 24) + 3, 1);
        struct job *j;
        want_law(k, trained(k, &t, &j), &t);
    }
}

// Checks the bytes, too: no memory is counted for what is under way.
static void want_memory(struct lab_case *k, struct task t)
{
    const struct lab_run *run = want_alone(k, t, "");
    size_t n = t.zero.n, w = (size_t)t.world.workers;
    size_t most = n * 8 + 12 * (n / w + 1) + 1024;
    want_law(k, run, &t);
    for (size_t r = 0; run && r < w; r++) {
        size_t is = run->v->rank[r].alloc_peak;
        lab_record(k, (int)w, n, "lab_alloc_bytes", (double)is);
        lab_want(k, is <= most,
                 "%zu workers, n = %zu: worker %zu has %zu bytes of "
                 "lab_alloc(), %zu are enough",
                 w, n, r, is, most);
    }
}

static void memory(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        want_memory(k, task_of(w, 840, 2));
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_memory(k, hidden_task(k, i));
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
