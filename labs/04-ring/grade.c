// grade.c - lab 4: the tests of lab_exchange() and ring_bytes().
//
// The expected values are computed here by the table of the handout: chunks are
// dealt out one element at a time, and bytes are added message by message. So
// this file does not contain the formula that the student must find.

#include "labs/04-ring/ring.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 32, MOST = 20011 };

static const int worlds[] = {1, 2, 3, 4, 5, 6, 7, 8, 16};

enum { WORLDS = sizeof worlds / sizeof *worlds };

// The sizes to try with w workers.
static int sizes(int w, size_t n[8])
{
    const size_t all[] = {0, 1, 7, (size_t)w - 1, (size_t)w, 1000, MOST};
    memcpy(n, all, sizeof all);
    return sizeof all / sizeof *all;
}

// The lengths of w chunks: n elements are dealt out to them like cards, so that
// a few of the chunks get one more.
static void deal(size_t n, int w, size_t len[MOST_WORKERS])
{
    for (int c = 0; c < w; c++)
        len[c] = n / (size_t)w;
    n %= (size_t)w;
    for (int c = 0; n > 0; c++, n--)
        len[lab_at(LAB_LONG, c, w)]++;
}

// The worker on which the sum of chunk c is completed.
static int owner_of(int c, int w)
{
    return (c + (LAB_OWNER == 1 ? 1 : LAB_OWNER == 2 ? w - 1 : 0)) % w;
}

// The bytes that a worker sends in 2(w-1) messages, added message by message.
static size_t out_bytes(size_t n, int w, int r)
{
    size_t len[MOST_WORKERS], sum = 0;
    int c = 0;
    deal(n, w, len);
    while (owner_of(c, w) != r)
        c++;
    for (int m = 0; m < 2 * (w - 1); m++) {
        c = (c - LAB_RING_STEP + w) % w;
        sum += len[c];
    }
    return 4 * sum;
}

static size_t in_bytes(size_t n, int w, int r)
{
    return out_bytes(n, w, (r - LAB_RING_STEP + w) % w);
}

struct job {
    size_t n;
    bool normal; // numbers whose sum depends on the order of adding
    float *v[MOST_WORKERS];
};

static float number(const struct job *j, int rank, size_t i)
{
    if (j->normal)
        return (float)rng_normal(rng_key(4, (uint64_t)rank), i);
    return (float)((rank + 1) * 10 + (int)(i % 97));
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    for (size_t i = 0; i < j->n; i++)
        j->v[l->rank][i] = number(j, l->rank, i);
    return lab_exchange(l, j->v[l->rank], j->n);
}

static bool job_open(struct lab_case *k, struct job *j, size_t n, int w)
{
    *j = (struct job){.n = n};
    bool whole = true;
    for (int r = 0; r < w; r++)
        whole = (j->v[r] = malloc((n ? n : 1) * sizeof(float))) && whole;
    return lab_want(k, whole, "no memory for %d vectors of %zu", w, n);
}

static void job_close(struct job *j)
{
    for (int r = 0; r < MOST_WORKERS; r++)
        free(j->v[r]);
}

// Checks the sums of integers, which are the same in every order of adding.
static void want_sums(struct lab_case *k, const struct job *j, int w)
{
    for (int r = 0; r < w && !lab_failed(k); r++)
        for (size_t i = 0; i < j->n; i++) {
            double sum = 0;
            for (int o = 0; o < w; o++)
                sum += (double)number(j, o, i);
            if (!lab_want(k, (double)j->v[r][i] == sum,
                          "%d workers, n = %zu: v[%zu] of worker %d is %g, the "
                          "sum is %g",
                          w, j->n, i, r, (double)j->v[r][i], sum))
                break;
        }
}

// Sums vectors of n integers, and checks the sums. Returns NULL if the test has
// failed.
static const struct lab_run *want_exchange(struct lab_case *k,
                                           struct lab_world world, size_t n)
{
    struct job j;
    int w = world.workers;
    if (lab_failed(k))
        return NULL;
    const struct lab_run *run =
        job_open(k, &j, n, w) ? lab_virtual(k, &world, body, &j) : NULL;
    if (lab_clean(k, run))
        want_sums(k, &j, w);
    job_close(&j);
    return lab_failed(k) ? NULL : run;
}

static struct lab_world usual(int w, size_t eager)
{
    return (struct lab_world){.workers = w,
                              .alpha_s = 20e-6,
                              .bytes_per_s = 1.25e8,
                              .eager = eager};
}

// A cluster that no public test has.
static struct lab_world hidden_world(const struct lab_case *k, size_t eager)
{
    static const int others[] = {9, 10, 11, 13, 17, 19, 21, 24, 27, 31};
    struct lab_world world = lab_drawn(k, others[lab_pick(k, 0, 9)]);
    world.eager = eager;
    return world;
}

// A size for a hidden case of any test. Some are those of `time`.
static size_t hidden_size(const struct lab_case *k, int w)
{
    size_t each = lab_pick(k, 100, 1200);
    return each * (size_t)w + (each % 2 ? lab_pick(k, 0, (size_t)w - 1) : 0);
}

static void sums(struct lab_case *k)
{
    for (int a = 0; a < WORLDS; a++) {
        size_t n[8];
        int count = sizes(worlds[a], n);
        struct lab_world world = usual(worlds[a], SIZE_MAX);
        for (int b = 0; b < count; b++)
            want_exchange(k, world, n[b]);
    }
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k, SIZE_MAX);
        want_exchange(k, world, hidden_size(k, world.workers));
    }
    if (lab_hidden(k)) // longer than 2^17 a chunk
        want_exchange(k, usual(2, SIZE_MAX), lab_pick(k, 280000, 400000));
}

// The sum of a chunk begins with the number of the worker after its owner, and
// ends with the owner's.
static float in_order(const struct job *j, int w, size_t i)
{
    int c = owner_of((int)(i / (j->n / (size_t)w)), w);
    float sum = 0;
    for (int m = 1; m <= w; m++) {
        int rank = (c + m * LAB_RING_STEP + m * w) % w;
        sum = m == 1 ? number(j, rank, i) : sum + number(j, rank, i);
    }
    return sum;
}

// Every chunk has `each` elements.
static void want_order(struct lab_case *k, struct lab_world world, size_t each)
{
    int w = world.workers;
    struct job j;
    if (lab_failed(k))
        return;
    if (job_open(k, &j, each * (size_t)w, w)) {
        j.normal = true;
        bool clean = lab_clean(k, lab_virtual(k, &world, body, &j));
        for (size_t i = 0; clean && i < j.n * (size_t)w; i++) {
            int r = (int)(i / j.n);
            size_t at = i % j.n;
            int last = owner_of((int)(at / each), w);
            lab_want(k, j.v[r][at] == in_order(&j, w, at),
                     "%d workers: v[%zu] of worker %d is not added in the "
                     "ring's order: worker %d's number first, worker %d's "
                     "last",
                     w, at, r, (last + LAB_RING_STEP + w) % w, last);
        }
    }
    job_close(&j);
}

static void order(struct lab_case *k)
{
    for (int a = 1; a < WORLDS; a++)
        want_order(k, usual(worlds[a], SIZE_MAX), 60);
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k, SIZE_MAX);
        want_order(k, world, lab_pick(k, 3, 99));
    }
}

static void want_bytes(struct lab_case *k, struct lab_world world, size_t n)
{
    const struct lab_run *run = want_exchange(k, world, n);
    int w = world.workers;
    for (int r = 0; run && r < w; r++) {
        size_t out = (size_t)run->v->rank[r].bytes_out;
        size_t in = (size_t)run->v->rank[r].bytes_in;
        lab_record(k, w, n, "bytes_out", (double)out);
        lab_record(k, w, n, "bytes_in", (double)in);
        lab_want(k, out == out_bytes(n, w, r),
                 "rank %d of %d, n = %zu: sent %zu bytes, the law says %zu", r,
                 w, n, out, out_bytes(n, w, r));
        lab_want(k, in == in_bytes(n, w, r),
                 "rank %d of %d, n = %zu: received %zu bytes, the law says "
                 "%zu",
                 r, w, n, in, in_bytes(n, w, r));
    }
}

static void bytes(struct lab_case *k)
{
    for (int a = 0; a < WORLDS; a++) {
        size_t n[8];
        int count = sizes(worlds[a], n);
        struct lab_world world = usual(worlds[a], SIZE_MAX);
        for (int b = 0; b < count; b++)
            want_bytes(k, world, n[b]);
    }
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k, SIZE_MAX);
        want_bytes(k, world, hidden_size(k, world.workers));
    }
}

static void want_law(struct lab_case *k, int w, size_t n)
{
    for (int r = 0; r < w; r++) {
        size_t out = ring_bytes(n, r, w, LAB_OUT);
        size_t in = ring_bytes(n, r, w, LAB_IN);
        lab_want(k, out == out_bytes(n, w, r),
                 "ring_bytes(%zu, %d, %d, LAB_OUT) is %zu, but a ring sends "
                 "%zu",
                 n, r, w, out, out_bytes(n, w, r));
        lab_want(k, in == in_bytes(n, w, r),
                 "ring_bytes(%zu, %d, %d, LAB_IN) is %zu, but a ring receives "
                 "%zu",
                 n, r, w, in, in_bytes(n, w, r));
    }
}

static void law(struct lab_case *k)
{
    for (int w = 1; w <= 16; w++)
        for (size_t n = 0; n < 40; n++)
            want_law(k, w, n);
    for (int i = 0; i < 10 && lab_hidden(k); i++)
        want_law(k, (int)lab_pick(k, 9, MOST_WORKERS - 1),
                 10000000000 - lab_pick(k, 0, 999999));
}

static void deadlock(struct lab_case *k)
{
    for (int a = 1; a < WORLDS; a++)
        want_exchange(k, usual(worlds[a], 0), 1000);
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k, 0);
        want_exchange(k, world, hidden_size(k, world.workers));
    }
}

// Every chunk has `each` elements.
static void want_time(struct lab_case *k, struct lab_world world, size_t each)
{
    int w = world.workers;
    size_t n = each * (size_t)w;
    const struct lab_run *run = want_exchange(k, world, n);
    if (!run)
        return;
    double is = run->v->seconds;
    double ought =
        2 * (w - 1) * (world.alpha_s + (double)each * 4 / world.bytes_per_s);
    lab_record(k, w, n, "seconds", is);
    lab_want(k, is <= ought * (1 + 1e-9),
             "%d workers, n = %zu: took %.1f us, 2(w-1)(a + S/wB) is %.1f us",
             w, n, is * 1e6, ought * 1e6);
}

static void in_time(struct lab_case *k)
{
    for (int a = 1; a < WORLDS; a++)
        want_time(k, usual(worlds[a], 0), 1200);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k, 0);
        want_time(k, world, lab_pick(k, 100, 1200));
    }
}

// A worker stops responding in one of its calls.
static void want_named(struct lab_case *k, struct lab_world world, size_t n,
                       int dead, long call)
{
    struct job j;
    int w = world.workers;
    world.deadline_s = 5;
    world.kill = (struct virtual_kill){.rank = dead, .call = call};
    const struct lab_run *run =
        job_open(k, &j, n, w) ? lab_virtual(k, &world, body, &j) : NULL;
    for (int r = 0; run && r < w; r++) {
        const struct virtual_rank_result *is = &run->v->rank[r];
        bool beside = r == (dead + 1) % w || r == (dead + w - 1) % w;
        if (r == dead)
            continue;
        lab_want(k, is->value == -1,
                 "worker %d of %d is silent: worker %d returned %d, not -1",
                 dead, w, r, is->value);
        lab_want(k, !beside || run->missing[r] == dead,
                 "worker %d of %d is silent: its neighbour %d named rank %d in "
                 "lab_missing(), not %d",
                 dead, w, r, run->missing[r], dead);
        lab_want(k, is->ended_s < 10,
                 "worker %d of %d is silent: worker %d gave up after %g s, the "
                 "deadline is 5 s",
                 dead, w, r, is->ended_s);
    }
    job_close(&j);
}

static void dies(struct lab_case *k)
{
    for (int w = 2; w <= 5; w++)
        for (long call = 1; call <= 4; call++)
            want_named(k, usual(w, 0), 10 * (size_t)w, 1,
                       w == 2 && call > 2 ? 2 : call);
    for (int i = 0; i < 2 && lab_hidden(k); i++) {
        struct lab_world world = hidden_world(k, 0);
        want_named(k, world, hidden_size(k, world.workers),
                   (int)lab_pick(k, 0, 8), (long)lab_pick(k, 1, 20));
    }
}

static const struct lab_test tests[] = {
    {"sums", 15, sums, NULL,
     "Write down, for each message, which chunk worker r sends and which one "
     "it receives. -1 % 3 is -1 in C."},
    {"order", 10, order, "sums",
     "In the first half chunk c must end at worker c: which worker sends it "
     "first?"},
    {"bytes", 15, bytes, "sums",
     "n = 7, w = 3: one chunk has 3 elements. Which one, and is anything sent "
     "that is not needed?"},
    {"law", 5, law, NULL,
     "Count which chunks a worker does NOT send in the first half, and which "
     "in the second."},
    {"deadlock", 10, deadlock, "sums",
     "No send returns before its receiver has called. If all workers send "
     "first, which of them receives?"},
    {"time", 10, in_time, "deadlock",
     "A worker can send and receive at the same time. Does yours?"},
    {"dies", 5, dies, "deadlock",
     "After lab_wait() the err of each request says which of the two messages "
     "failed."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 4,
    .name = "ring",
    .file = "ring.c",
    .functions = "lab_exchange ring_bytes",
    .floor = 15,
    .tests = tests,
};
