// grade.c - lab 1: the tests of share_window() and lab_bcast().

#include "labs/01-share/share.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOWS = 61, EPOCHS = 40, MOST_WORKERS = 9, MOST_BATCH = 3 };

// The shuffled windows of every epoch, one after the other.
static size_t shuffled[EPOCHS * WINDOWS];

static void shuffle(size_t windows)
{
    for (size_t e = 0; e < EPOCHS; e++) {
        size_t *at = shuffled + e * WINDOWS;
        for (size_t i = 0; i < windows; i++) {
            size_t k = (size_t)rng_below(rng_key(1, e), i, i + 1);
            at[i] = at[k];
            at[k] = i;
        }
    }
}

// Windows have the numbers 0 .. WINDOWS - 1. For an epoch or a place that does
// not exist, the result is WINDOWS.
static size_t order(const struct share *s, size_t epoch, size_t place)
{
    if (epoch >= EPOCHS || place >= s->windows)
        return WINDOWS;
    return shuffled[epoch * WINDOWS + place];
}

static const size_t texts[] = {60, 61, 7};

// Calls each(k, s) for many numbers of workers, batches and texts, until the
// test has failed.
static void for_shares(struct lab_case *k,
                       void (*each)(struct lab_case *, const struct share *))
{
    struct share s = {.order = order};
    for (int t = 0; t < 3; t++) {
        s.windows = texts[t];
        shuffle(s.windows);
        for (s.workers = 1; s.workers <= MOST_WORKERS; s.workers++)
            for (s.batch = 1; s.batch <= MOST_BATCH && !lab_failed(k);
                 s.batch++)
                each(k, &s);
    }
    for (int i = 0; i < 4 && lab_hidden(k) && !lab_failed(k); i++) {
        s.windows = lab_pick(k, 2, WINDOWS);
        s.workers = (int)lab_pick(k, 10, 20);
        s.batch = (int)lab_pick(k, 1, 2);
        shuffle(s.windows);
        each(k, &s);
    }
}

// Counts how often each window is seen in a step.
static bool count_step(struct lab_case *k, const struct share *s, size_t step,
                       int seen[WINDOWS])
{
    for (int r = 0; r < s->workers; r++)
        for (int i = 0; i < s->batch; i++) {
            size_t window = share_window(s, step, r, i);
            if (!lab_want(
                    k, window < s->windows,
                    "%d workers, batch %d: window %d of worker %d in step "
                    "%zu is number %zu; there are only %zu windows",
                    s->workers, s->batch, i, r, step, window, s->windows))
                return false;
            seen[window]++;
        }
    return true;
}

static void disjoint_share(struct lab_case *k, const struct share *s)
{
    size_t all = (size_t)(s->workers * s->batch);
    for (size_t step = 0; (step + 1) * all <= s->windows; step++) {
        int seen[WINDOWS] = {0};
        if (!count_step(k, s, step, seen))
            return;
        for (size_t i = 0; i < s->windows; i++)
            lab_want(k, seen[i] <= 1,
                     "%d workers, batch %d, %zu windows: window %zu is seen %d "
                     "times in step %zu",
                     s->workers, s->batch, s->windows, i, seen[i], step);
    }
}

static void disjoint(struct lab_case *k)
{
    for_shares(k, disjoint_share);
}

// s->windows steps are exactly workers * batch epochs.
static void complete_share(struct lab_case *k, const struct share *s)
{
    int seen[WINDOWS] = {0}, all = s->workers * s->batch;
    for (size_t step = 0; step < s->windows; step++)
        if (!count_step(k, s, step, seen))
            return;
    for (size_t i = 0; i < s->windows; i++)
        lab_want(
            k, seen[i] == all,
            "%d workers, batch %d, %zu windows: in %d epochs window %zu is "
            "seen %d times",
            s->workers, s->batch, s->windows, all, i, seen[i]);
}

static void complete(struct lab_case *k)
{
    for_shares(k, complete_share);
}

// All workers together see the windows that one worker with the whole batch
// would see, in the same order.
static void same_share(struct lab_case *k, const struct share *s)
{
    size_t at = 0;
    for (size_t step = 0; step < s->windows; step++)
        for (int i = 0; i < s->workers * s->batch; i++, at++) {
            int turn = LAB_DEALT ? i % s->workers : i / s->batch;
            int r = lab_at(LAB_TURNS, turn, s->workers);
            int mine = LAB_DEALT ? i / s->workers : i % s->batch;
            size_t is = share_window(s, step, r, mine);
            size_t ought = order(s, at / s->windows, at % s->windows);
            lab_want(k, is == ought,
                     "%d workers, batch %d, %zu windows: window %d of worker "
                     "%d in step %zu is %zu; in the sequence of all epochs "
                     "it is %zu",
                     s->workers, s->batch, s->windows, mine, r, step, is,
                     ought);
        }
}

// A text with more than 2^32 windows.
static size_t large_order(const struct share *s, size_t epoch, size_t place)
{
    return (place + epoch) % s->windows;
}

static void same_large(struct lab_case *k)
{
    struct share s = {.windows = lab_pick(k, 5000000000, 9000000000),
                      .workers = (int)lab_pick(k, 2, 16),
                      .batch = (int)lab_pick(k, 1, 8),
                      .order = large_order};
    size_t all = (size_t)(s.workers * s.batch);
    size_t first = lab_pick(k, 4300000000, 4900000000) / all;
    for (size_t step = first; step < first + 3; step++)
        for (int r = 0; r < s.workers; r++)
            for (int i = 0; i < s.batch; i++) {
                int turn = lab_place(LAB_TURNS, r, s.workers);
                int place =
                    LAB_DEALT ? i * s.workers + turn : turn * s.batch + i;
                size_t at = step * all + (size_t)place;
                size_t is = share_window(&s, step, r, i);
                lab_want(k, is == at,
                         "%d workers, batch %d, %zu windows: window %d of "
                         "worker %d in step %zu is %zu, not %zu",
                         s.workers, s.batch, s.windows, i, r, step, is, at);
            }
}

static void same(struct lab_case *k)
{
    for_shares(k, same_share);
    if (lab_hidden(k))
        same_large(k);
}

enum { MOST_BYTES = 1000003 };

struct job {
    size_t bytes;
    int root;
    const unsigned char *text; // the root's bytes
    bool whole[32];            // by worker: whether its bytes are right
};

// The bytes of a root. Each root has other bytes.
static const unsigned char *text_of(int root, size_t bytes)
{
    static unsigned char text[MOST_BYTES];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(i * 131 + (i >> 8) + (size_t)root + 1);
    return text;
}

static int body(struct lab *l, void *arg)
{
    struct job *j = arg;
    unsigned char *p = malloc(j->bytes + 1);
    if (!p)
        return -1;
    memset(p, 0, j->bytes);
    p[j->bytes] = 0xa5; // must not change
    if (l->rank == j->root)
        memcpy(p, j->text, j->bytes);
    int err = lab_bcast(l, p, j->bytes, j->root);
    j->whole[l->rank] =
        p[j->bytes] == 0xa5 && memcmp(p, j->text, j->bytes) == 0;
    free(p);
    return err;
}

static const int worlds[] = {1, 2, 3, 4, 5, 8, 9, 16};

enum { WORLDS = sizeof worlds / sizeof *worlds };

static void want_broadcast(struct lab_case *k, int w, int root, size_t bytes)
{
    struct lab_world world = {.workers = w};
    struct job j = {.bytes = bytes, .root = root, .text = text_of(root, bytes)};
    bool clean =
        !lab_failed(k) && lab_clean(k, lab_virtual(k, &world, body, &j));
    for (int r = 0; clean && r < w; r++)
        lab_want(k, j.whole[r],
                 "%d workers, root %d, %zu bytes: worker %d has other bytes "
                 "than the root",
                 w, root, bytes, r);
}

static void broadcast(struct lab_case *k)
{
    static const size_t sizes[] = {0, 1, 40000};
    for (int a = 0; a < WORLDS; a++)
        for (int root = 0; root < worlds[a]; root++)
            for (int b = 0; b < 3; b++)
                want_broadcast(k, worlds[a], root, sizes[b]);
    for (int i = 0; i < 6 && lab_hidden(k); i++) {
        int w = (int)lab_pick(k, 3, 31);
        want_broadcast(k, w, (int)lab_pick(k, 0, (size_t)w - 1),
                       lab_pick(k, 1, 99999));
    }
}

static void want_bytes(struct lab_case *k, int w, size_t bytes)
{
    struct lab_world world = {.workers = w};
    struct job j = {.bytes = bytes,
                    .root = w - 1,
                    .text = text_of(w - 1, bytes)};
    const struct lab_run *run = lab_virtual(k, &world, body, &j);
    size_t sum = 0;
    for (int r = 0; run && r < w; r++)
        sum += (size_t)run->v->rank[r].bytes_out;
    if (lab_clean(k, run))
        lab_want(k, sum == (size_t)(w - 1) * bytes,
                 "%d workers, %zu bytes: %zu bytes were sent in all, the "
                 "formula gives %zu",
                 w, bytes, sum, (size_t)(w - 1) * bytes);
}

static void bytes(struct lab_case *k)
{
    static const size_t sizes[] = {0, 999, MOST_BYTES};
    for (int a = 0; a < WORLDS; a++)
        for (int b = 0; b < 3 && !lab_failed(k); b++)
            want_bytes(k, worlds[a], sizes[b]);
    for (int i = 0; i < 4 && lab_hidden(k) && !lab_failed(k); i++)
        want_bytes(k, (int)lab_pick(k, 3, 31), lab_pick(k, 1, MOST_BYTES));
}

// The time of the tree, or of the chain with the best number of pieces if that
// is less.
static double least_seconds(int w, double bytes, double a, double b)
{
    double least = 0;
    for (int have = 1; have < w; have *= 2)
        least += a + bytes / b;
    for (int m = 1; m <= 2000 && w > 1; m++) {
        double chain = (w - 2 + m) * (a + bytes / m / b);
        least = chain < least ? chain : least; // gcc 12 for ARM fails at fmin()
    }
    return least;
}

static void want_time(struct lab_case *k, int w, size_t bytes, double a,
                      double b, const char *name)
{
    double most = least_seconds(w, (double)bytes, a, b);
    struct lab_world world = {.workers = w, .alpha_s = a, .bytes_per_s = b};
    struct job j = {.bytes = bytes, .text = text_of(0, bytes)};
    const struct lab_run *run = lab_virtual(k, &world, body, &j);
    if (!lab_clean(k, run))
        return;
    lab_record(k, w, bytes, name, run->v->seconds);
    lab_speed(k, run->v->seconds, most,
              "%d workers, %zu bytes, a = %g s, B = %g bytes/s: took %.4g s, "
              "the better of tree and chain takes %.4g s",
              w, bytes, a, b, run->v->seconds, most);
}

static void in_time(struct lab_case *k)
{
    static const struct {
        double a, b;
    } nets[] = {{20e-6, 1.25e8}, {1e-3, 1e9}, {2e-6, 1e10}};
    for (int a = 1; a < WORLDS; a += 2)
        for (size_t bytes = 1000; bytes <= 600000; bytes *= 8)
            for (int net = 0; net < 3; net++)
                want_time(k, worlds[a], bytes, nets[net].a, nets[net].b,
                          net ? "seconds_other" : "seconds");
    for (int i = 0; i < 6 && lab_hidden(k); i++)
        want_time(k, (int)lab_pick(k, 3, 31), lab_pick(k, 500, 900000),
                  1e-6 * (double)lab_pick(k, 1, 2000),
                  1e6 * (double)lab_pick(k, 20, 20000), "seconds_hidden");
}

static const struct lab_test tests[] = {
    {"disjoint", 10, disjoint, NULL,
     "Number the windows of a step 0 .. workers * batch - 1 before you "
     "shuffle."},
    {"complete", 10, complete, "disjoint",
     "61 windows, 4 workers, batch 3: step 5 takes one window of epoch 0 and "
     "eleven of epoch 1."},
    {"same", 10, same, "disjoint",
     "Every epoch has an order of its own, the same for all workers."},
    {"broadcast", 10, broadcast, NULL,
     "Count workers from the root: me = (rank - root + w) % w."},
    {"bytes", 10, bytes, "broadcast",
     "Every worker but the root receives the bytes once, and nothing else."},
    {"time", 20, in_time, "broadcast",
     "Short data: in each round every worker that has the bytes sends them on. "
     "Long data: cut into m pieces; which m makes (w-2+m)(a + S/mB) least?"},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 1,
    .name = "share and broadcast",
    .file = "share.c",
    .functions = "share_window lab_bcast",
    .floor = 20,
    .tests = tests,
};
