// grade.c - lab 10: the tests of an audit.
//
// Rows are made backwards. The repeats' means are chosen first, so that the
// right printed numbers are known. Then the seconds of steps are chosen around
// the means. Then flaws are planted.

#include "labs/10-audit/audit.h"

#include "labs/check.h"
#include "labs/term.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 200, WORDS = 160, ENOUGH = 3 + LAB_ENOUGH };

static const char *const flaw_names[] = {"TOO_FEW",     "BEST_OF",
                                         "WARM_UP",     "NO_SUCH",
                                         "WRONG_TOTAL", "WRONG_BYTES",
                                         NULL};
static const char *const other_names[] = {"OTHER_WORKERS", "OTHER_BATCH",
                                          "OTHER_LR",      "OTHER_MODEL",
                                          "OTHER_WIRE",    "OTHER_OVERLAP",
                                          "OTHER_PLACE",   NULL};

// Writes the names of a set's flags to `to`, and returns it.
static const char *words(char to[WORDS], unsigned set, const char *const *names)
{
    size_t at = 0;
    snprintf(to, WORDS, "nothing");
    for (; set && *names; set >>= 1, names++)
        if (set & 1)
            at += (size_t)snprintf(to + at, WORDS - at, "%s%s", at ? " + " : "",
                                   *names);
    if (set)
        snprintf(to + at, WORDS - at, "%sno flag", at ? " + " : "");
    return to;
}

// A row, and its right numbers.
struct made {
    struct row row;
    double ought, best, warm; // seconds: right, best repeat, with warm-up
    double bytes;
};

// A random number below n for this key and name.
static int pick(uint64_t key, uint64_t name, int n)
{
    return (int)(rng_uniform(key, name) * n);
}

// The bytes that a worker sends, added message by message: its part to each
// server, and on a ring one chunk in each of 2(w-1) messages.
static double bytes_of(const struct row *r)
{
    double all = (double)r->parameters * (r->wire_bits == 16 ? 2 : 4), sum = 0;
    if (r->way == ONE_SERVER)
        return all;
    for (int m = 0; m < r->workers - 1; m++)
        sum += all / r->workers; // gradients to others
    return sum + sum;            // and as many sums or parameters
}

// The result of n repeats, whose means are in rising order: what the term
// counts.
static double typical(const double *mean, int n)
{
    double sum = 0, logs = 0;
    for (int k = 0; k < n; k++) {
        sum += mean[k] / n;
        logs += log(mean[k]) / n;
    }
    const double of[] = {(mean[(n - 1) / 2] + mean[n / 2]) / 2, sum,
                         mean[n / 2], exp(logs)};
    return of[LAB_RESULT];
}

// Makes a row without flaws. mean[] has the means of its repeats in rising
// order; the repeats themselves begin at another one of them.
static struct made make(uint64_t key, double base)
{
    static const int lengths[] = {3, 4, 5, 8};
    int repeats = lengths[pick(key, 5, 4)];
    struct made m = {.row = {.way = (enum way)pick(key, 0, 3),
                             .workers = 2 << pick(key, 1, 3),
                             .batch = 2 << pick(key, 2, 3),
                             .lr = 1e-3,
                             .parameters = 1000000,
                             .wire_bits = 32 >> pick(key, 3, 2),
                             .overlap = pick(key, 4, 2) == 0,
                             .repeats = repeats < ENOUGH ? ENOUGH : repeats,
                             .steps = 8 + 2 * pick(key, 6, 10),
                             .warmup = 2 + 2 * pick(key, 10, 2)}};
    struct row *r = &m.row;
    double mean[MOST_REPEATS], warm[MOST_REPEATS];
    int turn = pick(key, 7, r->repeats);
    for (int k = 0; k < r->repeats; k++) {
        // Uneven distances: the median is not the mean.
        mean[k] = base * (1 + 0.01 * k + 0.005 * k * k);
        double late = 2.0 + 0.1 * k; // how slow the warm-up is
        warm[k] = mean[k] * (1 + (late - 1) * r->warmup / r->steps);
        int at = (k + turn) % r->repeats; // the order of repeats varies
        for (int s = 0; s < r->steps; s++) {
            double off = (s % 2 ? 0.02 : -0.02) * base;
            r->seconds[at][s] = s < r->warmup ? mean[k] * late : mean[k] + off;
        }
    }
    m.ought = typical(mean, r->repeats);
    m.warm = typical(warm, r->repeats);
    m.best = mean[0];
    m.bytes = bytes_of(r);
    r->printed_seconds = m.ought;
    r->printed_total = m.ought * (r->steps - r->warmup);
    r->printed_bytes = m.bytes;
    return m;
}

// The key of row number i of a test. Hidden rows follow ROWS public ones.
static uint64_t row_key(struct lab_case *k, uint64_t test, uint64_t i)
{
    if (i >= ROWS && lab_hidden(k))
        return rng_key(test, lab_pick(k, ROWS, 1u << 30));
    return rng_key(test, i);
}

static uint64_t rows_of(struct lab_case *k)
{
    return lab_hidden(k) ? 2 * ROWS : ROWS;
}

static bool near(double is, double ought)
{
    return fabs(is / ought - 1) < 1e-9;
}

static void seconds(struct lab_case *k)
{
    for (uint64_t i = 0, n = rows_of(k); i < n; i++) {
        struct made m = make(row_key(k, 10, i), 0.5);
        m.row.printed_seconds = 7;
        double is = audit_seconds(&m.row);
        lab_want(k, near(is, m.ought),
                 "%d repeats of %d steps, %d of them warm-up: audit_seconds() "
                 "is %.6g, not %.6g",
                 m.row.repeats, m.row.steps, m.row.warmup, is, m.ought);
    }
}

static void want_bytes(struct lab_case *k, int way, int w, int bits, size_t n)
{
    static const char *const names[] = {"one server",
                                        "servers on workers' hosts", "a ring"};
    struct row r = {.way = (enum way)way,
                    .workers = w,
                    .parameters = n,
                    .wire_bits = bits,
                    .printed_bytes = 1};
    lab_want(k, near(audit_bytes(&r), bytes_of(&r)),
             "%s, %d workers, %zu numbers of %d bits: audit_bytes() is %.12g, "
             "but a worker sends %.12g",
             names[way], w, n, bits, audit_bytes(&r), bytes_of(&r));
}

static void bytes(struct lab_case *k)
{
    for (int way = 0; way < 3; way++)
        for (int w = 2; w <= 64; w *= 2)
            for (int bits = 16; bits <= 32; bits += 16)
                want_bytes(k, way, w, bits, 1000);
    for (int way = 0; way < 3 && lab_hidden(k); way++)
        want_bytes(k, way, (int)lab_pick(k, 3, 63), 16,
                   10000000000 + lab_pick(k, 0, 99999));
}

// Puts a number in its place among n numbers in rising order.
static void put(double *x, int n, double one)
{
    for (; n > 0 && x[n - 1] > one; n--)
        x[n] = x[n - 1];
    x[n] = one;
}

// Keeps the first n repeats.
static void drop_repeats(struct made *m, int n)
{
    struct row *r = &m->row;
    double mean[MOST_REPEATS], warm[MOST_REPEATS];
    r->repeats = n;
    for (int k = 0; k < n; k++) {
        double counted = 0, all = 0;
        for (int s = 0; s < r->steps; s++) {
            bool counts = s >= r->warmup;
            counted += counts ? r->seconds[k][s] / (r->steps - r->warmup) : 0;
            all += r->seconds[k][s] / r->steps;
        }
        put(mean, k, counted);
        put(warm, k, all);
    }
    m->ought = typical(mean, n);
    m->best = mean[0];
    m->warm = typical(warm, n);
}

// A factor near 1 that changes a printed number as rounding does.
static double rounded(uint64_t key, uint64_t name)
{
    return 1 + 4e-4 * (2 * rng_uniform(key, name) - 1);
}

// Makes a row with the flaws of a set, which has at most one of BEST_OF,
// WARM_UP and NO_SUCH. BEST_OF needs two repeats, since the best of one is
// right. The printed numbers of a row without flaws are rounded.
static struct made flawed(uint64_t key, unsigned flaws)
{
    // With a warm-up the seconds are at most 1.9 times as many.
    static const double other[] = {0.7, 2.3, 1.0010005};
    struct made m = make(key, 0.5);
    struct row *r = &m.row;
    if (flaws & TOO_FEW)
        drop_repeats(&m, (flaws & BEST_OF ? 2 : 1) +
                             pick(key, 9, ENOUGH - (flaws & BEST_OF ? 2 : 1)));
    r->printed_seconds = flaws & BEST_OF   ? m.best
                         : flaws & WARM_UP ? m.warm
                         : flaws & NO_SUCH ? m.ought * other[pick(key, 11, 3)]
                                           : m.ought;
    r->printed_total = r->printed_seconds *
                       (flaws & WRONG_TOTAL ? r->steps : r->steps - r->warmup);
    if (flaws & WRONG_BYTES) // counted at the server, or with headers
        r->printed_bytes = m.bytes * (pick(key, 8, 2) ? r->workers : 1.03);
    if (!flaws) {
        r->printed_seconds *= rounded(key, 40);
        r->printed_total *= rounded(key, 41);
        r->printed_bytes *= rounded(key, 42);
    }
    return m;
}

static void want_flaws(struct lab_case *k, struct made m, unsigned flaws)
{
    unsigned is = audit_row(&m.row);
    char said[WORDS], ought[WORDS];
    lab_want(
        k, is == flaws,
        "%d repeats of %d steps (%d warm-up), printed %.6g s a step, %.6g "
        "s in all, %.6g bytes; the right values are %.6g s and %.6g bytes: "
        "audit_row() is %s, not %s",
        m.row.repeats, m.row.steps, m.row.warmup, m.row.printed_seconds,
        m.row.printed_total, m.row.printed_bytes, m.ought, m.bytes,
        words(said, is, flaw_names), words(ought, flaws, flaw_names));
}

// Makes a row whose result with the warm-up is that of its fastest repeat. This
// is printed, and BEST_OF comes first.
static struct made best_and_warm(uint64_t key)
{
    struct made m = make(key, 0.5);
    struct row *r = &m.row;
    r->steps = 8;
    drop_repeats(&m, ENOUGH);
    for (int k = 0; k < r->repeats; k++) {
        double counted = 0;
        for (int s = r->warmup; s < r->steps; s++)
            counted += r->seconds[k][s];
        for (int s = 0; s < r->warmup; s++)
            r->seconds[k][s] = (m.best * r->steps - counted) / r->warmup;
    }
    r->printed_seconds = m.best;
    r->printed_total = m.best * (r->steps - r->warmup);
    return m;
}

static void rows(struct lab_case *k)
{
    static const unsigned printed[] = {0, BEST_OF, WARM_UP, NO_SUCH};
    for (uint64_t i = 0, n = rows_of(k); i < n; i++) {
        uint64_t key = row_key(k, 11, i);
        unsigned flaws = printed[pick(key, 20, 4)] |
                         (pick(key, 21, 3) ? 0 : TOO_FEW) |
                         (pick(key, 22, 3) ? 0 : WRONG_TOTAL) |
                         (pick(key, 23, 3) ? 0 : WRONG_BYTES);
        if (flaws)
            want_flaws(k, flawed(key, flaws), flaws);
    }
    for (uint64_t i = ROWS; i < ROWS + 3 && lab_hidden(k); i++)
        want_flaws(k, best_and_warm(row_key(k, 15, i)), BEST_OF);
}

static void sound(struct lab_case *k)
{
    for (uint64_t i = 0, n = rows_of(k); i < n; i++)
        want_flaws(k, flawed(row_key(k, 12, i), 0), 0);
}

// Changes row b in each setting of a set. The batch of all workers together
// stays the same unless the set has OTHER_BATCH. The model gets `more`
// parameters.
static void change(struct row *b, unsigned what, size_t more)
{
    int all = b->workers * b->batch;
    b->workers *= what & OTHER_WORKERS ? 2 : 1;
    b->batch = all / b->workers * (what & OTHER_BATCH ? 4 : 1);
    b->lr *= !(what & OTHER_LR) ? 1 : more == 24 ? 1.001 : 1 + 1e-12;
    b->parameters += what & OTHER_MODEL ? more : 0;
    b->wire_bits = what & OTHER_WIRE ? 48 - b->wire_bits : b->wire_bits;
    b->overlap = b->overlap != ((what & OTHER_OVERLAP) != 0);
    b->loopback = b->loopback != ((what & OTHER_PLACE) != 0);
}

static void pairs(struct lab_case *k)
{
    for (unsigned i = 0; i < 128 || (i < 256 && lab_hidden(k)); i++) {
        unsigned what = i % 128;
        uint64_t key = i < 128 ? what : lab_pick(k, ROWS, 1u << 30);
        struct made a = make(rng_key(13, key), 0.5), b = a;
        // A float takes the parameters of hidden rows for equal, or 32 bits do.
        if (i >= 128)
            a.row.parameters = b.row.parameters = 20000000000;
        b.row.way = (b.row.way + 1) % 3;
        change(&b.row, what, i < 128 ? 24 : i % 3 ? 1 : (size_t)1 << 32);
        unsigned is = audit_pair(&a.row, &b.row);
        char said[WORDS], ought[WORDS];
        lab_want(k, is == what,
                 "%d and %d workers, batches of %d and %d a worker, lr %.15g "
                 "and %.15g, %zu and %zu parameters: audit_pair() is %s, but "
                 "they differ in %s",
                 a.row.workers, b.row.workers, a.row.batch, b.row.batch,
                 a.row.lr, b.row.lr, a.row.parameters, b.row.parameters,
                 words(said, is, other_names), words(ought, what, other_names));
    }
}

// Tests a claim about rows a and b, where b takes `slower` times as long. The
// claim compares a with b, or b with a. A row's slowest repeat takes up to 1.3
// times as long as its fastest. `close`: b's repeats may be just above a's, or
// the fastest one is a's slowest; the ways may be equal, and factors are missed
// by nearly as much as they may be.
static void want_verdict(struct lab_case *k, uint64_t key, bool close)
{
    static const double slowers[] = {1.02, 1.3, 2, 3};
    static const double missed[] = {0.01, 0.05, 0.001}; // by so much at most
    double slower = slowers[pick(key, 30, 4)];
    struct made a = flawed(key, 0), b;
    // The slowest repeat of a, divided by its fastest one, if none is dropped.
    // b is made with the same key, so it has as many repeats.
    int last = a.row.repeats - 1, how = close ? pick(key, 38, 4) : 0;
    double widest = 1 + 0.01 * last + 0.005 * last * last;
    slower = how == 1 ? widest : how == 2 ? widest * 1.01 : slower;
    b = make(key, 0.5 * slower);
    if (how == 1) {
        int turn = pick(key, 7, last + 1), slow = (last + turn) % (last + 1);
        memcpy(b.row.seconds[turn], a.row.seconds[slow], sizeof *a.row.seconds);
    }
    struct claim c = {pick(key, 31, 2) ? FASTER : FEWER_BYTES, 0};
    unsigned differ = pick(key, 32, 4) ? 0 : 1u << pick(key, 33, 7);
    bool few = pick(key, 34, 5) == 0, loopback = pick(key, 35, 5) == 0;
    b.row.way = (a.row.way + (how != 3)) % 3;
    a.row.loopback = b.row.loopback = loopback;
    change(&b.row, differ, 24);
    b.bytes = bytes_of(&b.row);
    if (few)
        drop_repeats(&a, ENOUGH - 1);
    bool speed = c.kind == FASTER;
    bool turned = pick(key, 37, 2) == 0;
    const struct made *x = turned ? &b : &a, *y = turned ? &a : &b;
    double is = speed ? y->ought / x->ought : y->bytes / x->bytes;
    bool reached = pick(key, 36, 2) == 0;
    double by = missed[LAB_MISSED];
    c.factor = is * (1 + by * (close     ? reached ? 1 + by / 2 : 1.2
                               : reached ? 0.5
                                         : 5));
    enum verdict ought = reached ? SUPPORTED : CONTRADICTED;
    if (differ || (speed && (few || loopback || slower <= widest)))
        ought = UNTESTABLE;
    a.row.printed_seconds *= 1.5; // whatever is printed
    b.row.printed_bytes *= 3;
    enum verdict said = audit_claim(&x->row, &y->row, &c);
    static const char *const names[] = {"supported", "contradicted",
                                        "untestable"};
    char other[WORDS];
    lab_want(k, said == ought,
             "claim: %s by %.4g, raw numbers give %.4g; %d and %d repeats, "
             "rows differ in %s, %s: your verdict is %s, not %s",
             speed ? "faster" : "fewer bytes", c.factor, is, x->row.repeats,
             y->row.repeats, words(other, differ, other_names),
             loopback ? "loopback" : "a network",
             said <= UNTESTABLE ? names[said] : "none", names[ought]);
}

static void claims(struct lab_case *k)
{
    for (uint64_t i = 0, n = rows_of(k); i < n; i++)
        want_verdict(k, row_key(k, 14, i), i >= ROWS);
}

static const struct lab_test tests[] = {
    {"seconds", 10, seconds, NULL,
     "First compute the mean of each repeat, over the steps that count. Then "
     "combine these means as the handout says."},
    {"bytes", 10, bytes, NULL,
     "A worker reaches the server on its own host without a link: to how many "
     "other servers does it send?"},
    {"rows", 15, rows, "bytes",
     "A row may have several flaws. Compare the printed seconds with three "
     "numbers, in the order of audit.h."},
    {"sound", 5, sound, "rows",
     "A right number may differ from your result by rounding."},
    {"pairs", 15, pairs, NULL,
     "8 workers with 4 sequences each have the same batch as 4 workers with 8 "
     "each."},
    {"claims", 15, claims, "pairs",
     "First check whether the rows can be compared at all."},
    {NULL, 0, NULL, NULL, NULL},
};

const struct lab_about lab_about = {
    .number = 10,
    .name = "audit a published comparison",
    .file = "audit.c",
    .functions = "audit_seconds audit_bytes audit_row audit_pair audit_claim",
    .floor = 0,
    .tests = tests,
};
