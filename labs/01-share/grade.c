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

// The place in a step of the i-th window of a worker.
static size_t place_of(const struct share *s, int rank, int i)
{
    int turn = lab_place(LAB_TURNS, rank, s->workers);
    if (LAB_DEALT == 2 && i % 2)
        turn = s->workers - 1 - turn;
    return (size_t)(LAB_DEALT ? i * s->workers + turn : turn * s->batch + i);
}

// All workers together see the windows that one worker with the whole batch
// would see, in the same order.
static void want_step(struct lab_case *k, const struct share *s, size_t step)
{
    size_t all = (size_t)(s->workers * s->batch);
    for (int r = 0; r < s->workers; r++)
        for (int i = 0; i < s->batch; i++) {
            size_t at = step * all + place_of(s, r, i);
            size_t epoch = at / s->windows, place = at % s->windows;
            if (LAB_BACKWARDS == 2 || (LAB_BACKWARDS && epoch % 2))
                place = s->windows - 1 - place;
            size_t is = share_window(s, step, r, i);
            size_t ought = s->order(s, epoch, place);
            lab_want(k, is == ought,
                     "%d workers, batch %d, %zu windows: window %d of worker "
                     "%d in step %zu is %zu; in the sequence of all epochs "
                     "it is %zu",
                     s->workers, s->batch, s->windows, i, r, step, is, ought);
        }
}

static void same_share(struct lab_case *k, const struct share *s)
{
    for (size_t step = 0; step < s->windows; step++)
        want_step(k, s, step);
}

static size_t large_order(const struct share *s, size_t epoch, size_t place)
{
    return (place + epoch) % s->windows;
}

// A few steps from the one that takes window `at` of the endless sequence.
static void same_large(struct lab_case *k, size_t windows, size_t at)
{
    struct share s = {.windows = windows,
                      .workers = (int)lab_pick(k, 2, 16),
                      .batch = (int)lab_pick(k, 1, 8),
                      .order = large_order};
    size_t first = at / (size_t)(s.workers * s.batch);
    for (size_t step = first; step < first + 3; step++)
        want_step(k, &s, step);
}

static void same(struct lab_case *k)
{
    for_shares(k, same_share);
    if (lab_hidden(k)) // a text with more than 2^32 windows
        same_large(k, lab_pick(k, 5000000000, 9000000000),
                   lab_pick(k, 4300000000, 4900000000));
    for (int i = 0; i < 2 && lab_hidden(k); i++)     // more than 2^32 epochs
        same_large(k, 2 * lab_pick(k, 150, 250) + 1, // has no factor 2
                   lab_pick(k, 4300000000, 4900000000) * 501);
}

enum { MOST_BYTES = 1000003, LONG_BYTES = 32000003 };

struct job {
    size_t bytes;
    int root;
    const unsigned char *text; // the root's bytes
    bool whole[32];            // by worker: whether its bytes are right
};

// The bytes of a root. Each root has other bytes.
static const unsigned char *text_of(int root, size_t bytes)
{
    static unsigned char text[LONG_BYTES];
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

// A run in which every worker gets the root's bytes, or NULL.
static const struct lab_run *copied(struct lab_case *k, struct lab_world world,
                                    int root, size_t bytes)
{
    struct job j = {.bytes = bytes, .root = root, .text = text_of(root, bytes)};
    const struct lab_run *run =
        lab_failed(k) ? NULL : lab_virtual(k, &world, body, &j);
    bool whole = lab_clean(k, run);
    for (int r = 0; whole && r < world.workers; r++)
        whole = lab_want(k, j.whole[r],
                         "%d workers, root %d, %zu bytes: worker %d has other "
                         "bytes than the root",
                         world.workers, root, bytes, r);
    return whole ? run : NULL;
}

// A hidden case, of any test: a cluster, a root and a size.
struct cast {
    struct lab_world world;
    int root;
    size_t bytes;
};

static struct cast hidden_cast(const struct lab_case *k)
{
    int w = (int)lab_pick(k, 3, 31);
    return (struct cast){.world = lab_drawn(k, w),
                         .root = (int)lab_pick(k, 0, (size_t)w - 1),
                         .bytes = lab_pick(k, 1, 600000)};
}

static void broadcast(struct lab_case *k)
{
    static const size_t sizes[] = {0, 1, 40000};
    for (int a = 0; a < WORLDS; a++)
        for (int root = 0; root < worlds[a]; root++)
            for (int b = 0; b < 3; b++)
                copied(k, (struct lab_world){.workers = worlds[a]}, root,
                       sizes[b]);
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct cast c = hidden_cast(k);
        copied(k, c.world, c.root, c.bytes);
    }
    for (int w = 1; w < 32 && lab_hidden(k); w++)
        copied(k, (struct lab_world){.workers = w}, w / 2, lab_pick(k, 1, 99));
    if (lab_hidden(k)) { // the bytes times the pieces are more than 2^32
        struct lab_world chain = {.workers = 3,
                                  .alpha_s = 1e-7,
                                  .bytes_per_s = 1.6e10};
        copied(k, chain, 1, LONG_BYTES);
    }
}

static void want_bytes(struct lab_case *k, struct lab_world world, int root,
                       size_t bytes)
{
    const struct lab_run *run = copied(k, world, root, bytes);
    size_t sum = 0;
    int w = world.workers;
    for (int r = 0; run && r < w; r++)
        sum += (size_t)run->v->rank[r].bytes_out;
    if (run)
        lab_want(k, sum == (size_t)(w - 1) * bytes,
                 "%d workers, %zu bytes: %zu bytes were sent in all, the "
                 "formula gives %zu",
                 w, bytes, sum, (size_t)(w - 1) * bytes);
}

static void bytes(struct lab_case *k)
{
    static const size_t sizes[] = {0, 999, MOST_BYTES};
    for (int a = 0; a < WORLDS; a++)
        for (int b = 0; b < 3; b++)
            want_bytes(k, (struct lab_world){.workers = worlds[a]},
                       worlds[a] - 1, sizes[b]);
    for (int i = 0; i < 3 && lab_hidden(k); i++) {
        struct cast c = hidden_cast(k);
        want_bytes(k, c.world, c.root, c.bytes);
    }
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

static void want_time(struct lab_case *k, struct lab_world world, int root,
                      size_t bytes, const char *name)
{
    int w = world.workers;
    double a = world.alpha_s, b = world.bytes_per_s;
    double most = least_seconds(w, (double)bytes, a, b);
    const struct lab_run *run = copied(k, world, root, bytes);
    if (!run)
        return;
    lab_record(k, w, bytes, name, run->v->seconds);
    lab_speed(k, run->v->seconds, most,
              "%d workers, %zu bytes, a = %g s, B = %g bytes/s: took %.4g s, "
              "the better of tree and chain takes %.4g s",
              w, bytes, a, b, run->v->seconds, most);
}

// The least size for which a chain is at least a tenth faster than a tree. If w
// is no power of two, a file that counts the tree's rounds wrongly takes the
// tree.
static size_t chain_begins(struct lab_world net)
{
    double a = net.alpha_s, b = net.bytes_per_s, s = 100, tree;
    do {
        s *= 1.02;
        tree = ceil(log2(net.workers)) * (a + s / b);
    } while (least_seconds(net.workers, s, a, b) * 1.1 > tree);
    return (size_t)s;
}

// A hidden case where it matters how many pieces the chain has, or whether it
// is the chain: more than a thousand pieces; the least size for a chain, of
// many workers and of four; two pieces, where three are too many.
static struct cast narrow_cast(const struct lab_case *k, int i)
{
    const int workers[] = {31, (int)lab_pick(k, 28, 31), 4, 3};
    struct cast c = {.world = lab_drawn(k, workers[i])};
    c.world.bytes_per_s = 1 / c.world.alpha_s * (i ? 1e4 : 20);
    c.bytes = i == 0 ? 800000 : i == 3 ? 31000 : chain_begins(c.world);
    return c;
}

static void in_time(struct lab_case *k)
{
    static const struct lab_world nets[] = {
        {.alpha_s = 20e-6, .bytes_per_s = 1.25e8},
        {.alpha_s = 1e-3, .bytes_per_s = 1e9},
        {.alpha_s = 2e-6, .bytes_per_s = 1e10}};
    for (int a = 1; a < WORLDS; a += 2)
        for (size_t bytes = 1000; bytes <= 600000; bytes *= 8)
            for (int net = 0; net < 3; net++) {
                struct lab_world world = nets[net];
                world.workers = worlds[a];
                want_time(k, world, 0, bytes,
                          net ? "seconds_other" : "seconds");
            }
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct cast c = hidden_cast(k);
        want_time(k, c.world, c.root, c.bytes, "seconds_hidden");
    }
    for (int i = 0; i < 4 && lab_hidden(k); i++) {
        struct cast c = narrow_cast(k, i);
        want_time(k, c.world, c.root, c.bytes, "seconds_hidden");
    }
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
