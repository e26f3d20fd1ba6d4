// grade.c - lab 14: the tests of gradients that travel as two thin matrices.
//
// The expected numbers come from all workers' steps one after the other,
// written here in double precision and without messages. The sum that the
// student's file calls is here, too: its messages are counted.

#include "labs/14-lowrank/lowrank.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { MOST_WORKERS = 6, MOST_HIDDEN = 12, MOST_DRAWN = 16 };

// NORMAL: random numbers. THIN: each matrix is the same one of rank 1, times a
// number of the worker. LATE: random numbers, but the first step has zeros.
enum kind { NORMAL, THIN, LATE };

struct task {
    struct lowrank low; // the first member: its address is that of the task
    struct lab_case *test;
    enum kind kind;
    struct lab_world world;
    int steps;
    char text[160]; // what it is
    float *g[MOST_HIDDEN], *error[MOST_HIDDEN], *q[MOST_HIDDEN];
};

// Every worker sends everything to every other one: (w-1) n floats, and the
// latency once. All add in the order of the workers.
static int sum(const struct lowrank *o, struct lab *l, float *v, size_t n)
{
    struct lab_req r[LAB_REQUESTS];
    int w = l->workers, me = l->rank, k = 0;
    const struct task *t = (const struct task *)o;
    float *in = lab_memory(t->test, (n + 1) * (size_t)w, sizeof *in);
    if (!in)
        return -1;
    for (int far = 1; far < w; far++) {
        int to = (me + far) % w, from = (me - far + w) % w;
        if (lab_isend(l, to, v, n * sizeof *v, &r[k++]) ||
            lab_irecv(l, from, in + n * (size_t)from, n * sizeof *v, &r[k++]))
            return -1;
    }
    memcpy(in + n * (size_t)me, v, n * sizeof *v);
    if (lab_wait(l, r, k))
        return -1;
    for (size_t i = 0; i < n; i++) {
        v[i] = 0;
        for (size_t c = 0; c < (size_t)w; c++)
            v[i] += in[n * c + i];
    }
    return 0;
}

// The rank of a matrix by the term's rule.
static size_t rank_of(const struct lowrank *o, const struct matrix *m)
{
    size_t side = m->rows < m->columns ? m->rows : m->columns;
    size_t most = (side + LAB_RANK) / (LAB_RANK + 1);
    return o->rank < most ? o->rank : most;
}

// The elements of all Q.
static size_t q_length(const struct lowrank *o)
{
    size_t n = 0;
    for (int each = 0; each < o->matrices; each++)
        n += o->matrix[each].columns * rank_of(o, &o->matrix[each]);
    return n;
}

// The elements of both sums of a step: all P, all Q, and those in no matrix.
static size_t summed(const struct lowrank *o)
{
    size_t n = o->n + q_length(o);
    for (int each = 0; each < o->matrices; each++) {
        const struct matrix *its = &o->matrix[each];
        n += its->rows * (rank_of(o, its) - its->columns);
    }
    return n;
}

static double length_of(const double *p, size_t n, size_t r, size_t k)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += p[i * r + k] * p[i * r + k];
    return sqrt(squares);
}

// left: the columns' lengths before they are divided by them.
static void expect_orthogonal(double *p, size_t n, size_t r, double *left)
{
    for (size_t turn = 0; turn < r; turn++) {
        size_t k = (size_t)lab_at(LAB_GRAM, (int)turn, (int)r);
        double was = length_of(p, n, r, k);
        for (size_t t = 0; t < turn; t++) {
            size_t c = (size_t)lab_at(LAB_GRAM, (int)t, (int)r);
            double along = 0;
            for (size_t i = 0; i < n; i++)
                along += p[i * r + k] * p[i * r + c];
            for (size_t i = 0; i < n; i++)
                p[i * r + k] -= along * p[i * r + c];
        }
        left[k] = length_of(p, n, r, k);
        for (size_t i = 0; i < n; i++)
            p[i * r + k] = left[k] > 1e-4 * was ? p[i * r + k] / left[k] : 0;
    }
}

// The state of all workers. g: one vector for all, after a step.
struct expected {
    double *g, *error[MOST_HIDDEN], *q;
    bool rounds; // so little is left of a column that rounding turns it
};

static float gradient(const struct task *t, int step, int rank, size_t i)
{
    uint64_t key = rng_key(14000 + (uint64_t)step, (uint64_t)rank);
    const struct matrix *m = t->low.matrix, *end = m + t->low.matrices;
    while (m < end && i >= m->off + m->rows * m->columns)
        m++;
    if (t->kind == LATE && step == 0)
        return 0;
    if (t->kind != THIN || m == end || i < m->off)
        return (float)rng_normal(key, i);
    size_t at = i - m->off;
    float row = (float)rng_normal(rng_key(1, m->off), at / m->columns);
    float column = (float)rng_normal(rng_key(2, m->off), at % m->columns);
    return (float)(1 + rank) * row * column;
}

// One worker's M times Q, or its transpose times P, is added to the mean `out`.
static void add_product(const struct task *t, const struct matrix *m, size_t r,
                        int step, const double *error, const double *in,
                        double *out, int rank, bool turned)
{
    for (size_t row = 0; row < m->rows; row++)
        for (size_t col = 0; col < m->columns; col++) {
            size_t at = m->off + row * m->columns + col;
            double x = (double)gradient(t, step, rank, at) + error[at];
            const double *from = in + (turned ? row : col) * r;
            double *to = out + (turned ? col : row) * r;
            for (size_t c = 0; c < r; c++)
                to[c] += x * from[c] / t->world.workers;
        }
}

static void expect_matrix(struct lab_case *k, const struct task *t, int step,
                          const struct matrix *m, double *q, struct expected *e)
{
    static const double owed[] = {1, 0.5, 0.75};
    size_t r = rank_of(&t->low, m);
    double *p = lab_memory(k, m->rows * r, sizeof *p);
    double *mean = lab_memory(k, m->columns * r, sizeof *mean);
    double *left = lab_memory(k, r, sizeof *left), squares = 0;
    if (!p || !mean || !left)
        return;
    for (int w = 0; w < t->world.workers; w++)
        add_product(t, m, r, step, e->error[w], q, p, w, false);
    expect_orthogonal(p, m->rows, r, left);
    for (size_t at = m->off; at < m->off + m->rows * m->columns; at++)
        squares += pow((double)gradient(t, step, 0, at) + e->error[0][at], 2);
    for (size_t c = 0; c < r; c++)
        e->rounds |=
            length_of(p, m->rows, r, c) > 0 &&
            left[c] < 1e-3 * sqrt(squares) * length_of(q, m->columns, r, c);
    for (int w = 0; w < t->world.workers; w++)
        add_product(t, m, r, step, e->error[w], p, mean, w, true);
    for (size_t c = 0; c < r; c++)
        for (size_t j = 0; length_of(p, m->rows, r, c) > 0 && j < m->columns;
             j++)
            q[j * r + c] = mean[j * r + c];
    for (size_t row = 0; row < m->rows * m->columns; row++) {
        size_t at = m->off + row;
        e->g[at] = 0;
        for (size_t c = 0; c < r; c++)
            e->g[at] +=
                p[row / m->columns * r + c] * q[row % m->columns * r + c];
        for (int w = 0; w < t->world.workers; w++) {
            double x = (double)gradient(t, step, w, at) + e->error[w][at];
            e->error[w][at] = owed[LAB_OWED] * (x - e->g[at]);
        }
    }
}

static void expect_step(struct lab_case *k, const struct task *t, int step,
                        struct expected *e)
{
    size_t nq = 0;
    for (size_t i = 0; i < t->low.n; i++) { // what is in a matrix comes later
        e->g[i] = 0;
        for (int w = 0; w < t->world.workers; w++)
            e->g[i] += (double)gradient(t, step, w, i) / t->world.workers;
    }
    for (int each = 0; each < t->low.matrices && !lab_failed(k); each++) {
        const struct matrix *its = &t->low.matrix[each];
        expect_matrix(k, t, step, its, e->q + nq, e);
        nq += its->columns * rank_of(&t->low, its);
    }
}

static int body(struct lab *l, void *arg)
{
    struct task *t = arg;
    int r = l->rank, err = 0;
    for (size_t i = 0; i < q_length(&t->low); i++)
        t->q[r][i] = (float)rng_normal(rng_key(14, 14), i);
    for (int step = 0; step < t->steps && !err; step++) {
        for (size_t i = 0; i < t->low.n; i++)
            t->g[r][i] = gradient(t, step, r, i);
        err = lowrank_exchange(l, &t->low, t->g[r], t->error[r], t->q[r]);
        lab_release(l);
    }
    return err;
}

// Runs a task. Returns NULL if it failed.
static const struct lab_run *ran(struct lab_case *k, struct task *t)
{
    size_t n = t->low.n + 1, most = n * t->low.rank;
    t->test = k;
    for (int r = 0; r < t->world.workers && !lab_failed(k); r++) {
        t->g[r] = lab_memory(k, n, sizeof(float));
        t->error[r] = lab_memory(k, n, sizeof(float));
        t->q[r] = lab_memory(k, most, sizeof(float));
    }
    if (lab_failed(k))
        return NULL;
    const struct lab_run *run = lab_virtual(k, &t->world, body, t);
    return lab_clean(k, run) ? run : NULL;
}

// A job whose matrices have these rows and columns, with `gap` elements in no
// matrix before each of them, and after the last.
static struct task task_of(int workers, size_t rank, int matrices,
                           const size_t (*shapes)[2], size_t gap)
{
    struct task t = {.world = {.workers = workers,
                               .alpha_s = 20e-6,
                               .bytes_per_s = 1.25e8},
                     .steps = 1,
                     .low = {.rank = rank, .matrices = matrices, .sum = sum}};
    size_t at = gap;
    for (int m = 0; m < matrices; m++) {
        t.low.matrix[m] = (struct matrix){at, shapes[m][0], shapes[m][1]};
        at += shapes[m][0] * shapes[m][1] + gap;
    }
    t.low.n = at;
    snprintf(t.text, sizeof t.text,
             "%d workers, n = %zu, rank %zu, %d matrices, the first %zu x %zu",
             workers, at, rank, matrices, t.low.matrix[0].rows,
             t.low.matrix[0].columns);
    return t;
}

// Compares n numbers of a worker after all steps. same: another worker's, which
// must have the same bits; NULL: none.
static void want_close(struct lab_case *k, const struct task *t,
                       const char *name, int rank, const float *is,
                       const float *same, const double *ought, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = (double)is[i];
        lab_want(k, fabs(x - ought[i]) <= 3e-3 * (1 + fabs(ought[i])),
                 "%s: after step %d %s[%zu] of worker %d is %.6g, not %.6g",
                 t->text, t->steps, name, i, rank, x, ought[i]);
        lab_want(k, !same || memcmp(&is[i], &same[i], sizeof *is) == 0,
                 "%s: after step %d %s[%zu] is %.9g on worker %d and %.9g on "
                 "worker 0",
                 t->text, t->steps, name, i, x, rank,
                 same ? (double)same[i] : 0);
    }
}

// Runs a task, and checks all results. Returns NULL if the test has failed.
static const struct lab_run *want_task(struct lab_case *k, struct task t)
{
    size_t n = t.low.n, nq = q_length(&t.low);
    struct expected e = {.g = lab_memory(k, n + 1, sizeof(double)),
                         .q = lab_memory(k, nq + 1, sizeof(double))};
    for (int r = 0; r < t.world.workers; r++)
        e.error[r] = lab_memory(k, n + 1, sizeof(double));
    const struct lab_run *run = ran(k, &t);
    if (!run)
        return NULL;
    for (size_t i = 0; i < nq; i++)
        e.q[i] = (double)(float)rng_normal(rng_key(14, 14), i);
    for (int step = 0; step < t.steps && !lab_failed(k); step++)
        expect_step(k, &t, step, &e);
    for (int r = 0; r < t.world.workers && !lab_failed(k) && !e.rounds; r++) {
        want_close(k, &t, "g", r, t.g[r], t.g[0], e.g, n);
        want_close(k, &t, "error", r, t.error[r], NULL, e.error[r], n);
        want_close(k, &t, "q", r, t.q[r], t.q[0], e.q, nq);
    }
    return lab_failed(k) ? NULL : run;
}

// Some are tiny, some huge: of a hidden case no float holds the squares. With
// `same`, columns 0 and 2 are equal, and 1 is 0. Else little is left of the
// last: four limits with seed 1, a third with 2.
static void want_orthogonal(struct lab_case *k, size_t rows, size_t r,
                            uint64_t seed, bool same)
{
    float *p = lab_memory(k, rows * r, sizeof *p);
    double *ought = lab_memory(k, rows * r, sizeof *ought);
    double *lengths = lab_memory(k, r, sizeof *lengths);
    float left = seed == 1 ? 4e-4f : seed == 2 ? 3e-5f : 4e-3f;
    if (!p || !ought || !lengths)
        return;
    for (size_t i = 0; i < rows * r; i++) {
        p[i] = ldexpf((float)rng_normal(rng_key(7, seed), i),
                      (seed ? 70 : 20) * ((int)rows % 3 - 1));
        if (same && (i % r == 1 || i % r == 2))
            p[i] = i % r == 2 ? p[i - 2] : 0;
        if (!same && r > 2 && i % r == r - 1)
            p[i] = p[i + 1 - r] + left * p[i];
        ought[i] = (double)p[i];
    }
    expect_orthogonal(ought, rows, r, lengths);
    lowrank_orthogonal(p, rows, r);
    for (size_t i = 0; i < rows * r; i++)
        lab_want(k, fabs((double)p[i] - ought[i]) <= (seed == 1 ? 1e-2 : 1e-3),
                 "%zu rows, %zu columns%s: row %zu of column %zu is %g, not %g",
                 rows, r, same ? ", of which one is 0 and two are equal" : "",
                 i / r, i % r, (double)p[i], ought[i]);
}

static void orthogonal(struct lab_case *k)
{
    static const size_t sizes[][2] = {{1, 1}, {5, 1}, {5, 2},
                                      {9, 3}, {8, 6}, {40, 4}};
    for (int s = 0; s < 6; s++) {
        want_orthogonal(k, sizes[s][0], sizes[s][1], 0, false);
        if (sizes[s][1] > 2)
            want_orthogonal(k, sizes[s][0], sizes[s][1], 0, true);
    }
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        size_t r = lab_pick(k, 3, 12);
        want_orthogonal(k, r + lab_pick(k, 2, 99), r, lab_pick(k, 3, 1000),
                        i % 2);
    }
    if (lab_hidden(k)) // 16 bits do not count so many rows
        want_orthogonal(k, lab_pick(k, 66000, 90000), 2, 3, false);
    for (uint64_t seed = 1; seed <= 2 && lab_hidden(k); seed++)
        want_orthogonal(k, lab_pick(k, 40, 80), 3, seed, false);
}

// want_task() with steps of a kind.
static void want_steps(struct lab_case *k, struct task t, enum kind kind,
                       int steps)
{
    t.kind = kind;
    t.steps = steps;
    want_task(k, t);
}

static void rest(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++)
        for (size_t n = 1; n <= 50; n += 7)
            want_steps(k, task_of(w, 2, 0, NULL, n), NORMAL, 2);
    if (lab_hidden(k)) // 16 bits do not count so many
        want_task(k, task_of(MOST_HIDDEN, 2, 0, NULL, 70001));
}

static const size_t shapes[][2] = {{6, 4}, {5, 7},   {1, 9},
                                   {8, 3}, {12, 10}, {60, 80}};

// A hidden case of any test.
static struct task hidden_task(const struct lab_case *k)
{
    size_t sides[MOST_DRAWN][2];
    for (uint64_t i = 0; i < 2 * MOST_DRAWN; i++)
        sides[i / 2][i % 2] = 1 + lab_draw(k, i, 30);
    int w = (int)lab_pick(k, 2, MOST_HIDDEN);
    struct task t =
        task_of(w, lab_pick(k, 1, 7), (int)lab_pick(k, 1, MOST_DRAWN), sides,
                lab_pick(k, 0, 6));
    t.world = lab_drawn(k, w);
    return t;
}

// Every matrix has rank 1: g is the mean, and a worker owes its difference.
static void exact(struct lab_case *k)
{
    for (int w = 1; w <= 4; w++)
        for (size_t rank = 1; rank <= 3; rank++)
            want_steps(k, task_of(w, rank, 3, shapes, 2), THIN, 1);
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_steps(k, hidden_task(k), THIN, 1);
}

static void step(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w += 2)
        for (size_t rank = 1; rank <= 4; rank++)
            for (int matrices = 1; matrices <= 5; matrices += 2)
                want_task(k, task_of(w, rank, matrices, shapes, rank % 2 * 3));
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_task(k, hidden_task(k));
    if (lab_hidden(k))
        want_task(k, task_of(2, lab_pick(k, 9, 20), 1, shapes + 5, 0));
    if (lab_hidden(k)) { // more elements than 16 bits count, 64 matrices
        size_t many[LOWRANK_MATRICES][2] = {{300, 250}};
        for (size_t m = 1; m < LOWRANK_MATRICES; m++)
            many[m][0] = many[m][1] = m;
        want_task(k, task_of(2, 3, LOWRANK_MATRICES, many, 1));
    }
}

static void feedback(struct lab_case *k)
{
    for (int w = 1; w <= 4; w++)
        for (int steps = 2; steps <= 5; steps++)
            want_steps(k, task_of(w, 2, 4, shapes, 1),
                       steps % 2 ? LATE : NORMAL, steps);
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_steps(k, hidden_task(k), i == 1 ? LATE : NORMAL,
                   (int)lab_pick(k, 5, 8));
}

static void want_bytes(struct lab_case *k, struct task t, const char *what)
{
    const struct lab_run *run = want_task(k, t);
    size_t law = 4 * (size_t)(t.world.workers - 1) * summed(&t.low);
    for (int r = 0; run && r < t.world.workers; r++) {
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        lab_record(k, t.world.workers, t.low.rank, what, (double)out);
        lab_want(k, out == law && in == law,
                 "%s: worker %d sent %zu bytes and received %zu; sums of %zu "
                 "elements move %zu",
                 t.text, r, out, in, summed(&t.low), law);
    }
}

static void bytes(struct lab_case *k)
{
    for (int w = 1; w <= MOST_WORKERS; w++) {
        want_bytes(k, task_of(w, 3, 5, shapes, 4), "bytes_out");
        want_bytes(k, task_of(4, (size_t)w, 1, shapes + 5, 0), "matrix_bytes");
    }
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_bytes(k, hidden_task(k), "bytes_out");
}

static void want_time(struct lab_case *k, struct task t)
{
    const struct lab_run *run = want_task(k, t);
    double bytes = 4. * (t.world.workers - 1) * (double)summed(&t.low);
    double ought = 2 * t.world.alpha_s + bytes / t.world.bytes_per_s;
    if (!run)
        return;
    double is = run->v->seconds;
    lab_record(k, t.world.workers, t.low.rank, "seconds", is);
    lab_speed(k, is, ought,
              "%s, a = %g s, B = %g bytes/s: took %.4g s, two sums of %zu "
              "elements in all take %.4g s",
              t.text, t.world.alpha_s, t.world.bytes_per_s, is, summed(&t.low),
              ought);
}

static void in_time(struct lab_case *k)
{
    for (int w = 2; w <= MOST_WORKERS; w += 2)
        for (size_t rank = 1; rank <= 4; rank++) {
            struct task t = task_of(w, rank, 5, shapes, 3);
            t.world.alpha_s = 1e-3;
            want_time(k, t);
            want_time(k, task_of(w, rank, 1, shapes + 5, 80));
        }
    for (int i = 0; i < 3 && lab_hidden(k); i++)
        want_time(k, hidden_task(k));
}

static const struct lab_test tests[] = {
    {"orthogonal", 10, orthogonal, NULL,
     "Of the second of two equal columns only rounding is left: do not divide "
     "by its length."},
    {"rest", 5, rest, NULL,
     "A bias is no matrix. It is summed as it is, and divided by the number of "
     "workers."},
    {"exact", 10, exact, "orthogonal",
     "If all gradients have rank 1, P has one direction, and P Q^T is their "
     "mean. What is owed is then M minus the mean."},
    {"step", 15, step, "exact",
     "A matrix with one row has rank 1. Q of the next matrix begins where this "
     "one's ends."},
    {"feedback", 15, feedback, "step",
     "The error is added before the first product, and both products use the "
     "same M."},
    {"bytes", 5, bytes, "step",
     "Only the elements in no matrix, P and Q travel."},
    {"time", 10, in_time, "step",
     "All P and the elements in no matrix fit into one vector, and all Q into "
     "another."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 14,
    .name = "low rank",
    .file = "lowrank.c",
    .functions = "lowrank_orthogonal lowrank_exchange",
    .floor = 5,
    .tests = tests,
};
