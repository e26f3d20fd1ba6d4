// audit.h - lab 10: the functions that audit.c defines, and the numbers that a
// study publishes.

#ifndef LABS_AUDIT_H
#define LABS_AUDIT_H

#include "labs/lab.h"

// A way to exchange gradients.
enum way {
    ONE_SERVER,     // workers send gradients to one server, which answers
    BESIDE_WORKERS, // a server on each worker's host, with 1/w of the vector
    AROUND_A_RING,  // reduce-scatter and all-gather between neighbours
};

enum { MOST_REPEATS = 8, MOST_STEPS = 32 };

// A row of the study's table: one way, measured `repeats` times.
struct row {
    enum way way;
    // Settings.
    int workers, batch; // batch: sequences of one worker in a step
    double lr;
    size_t parameters;
    int wire_bits; // of each number in a message: 32 or 16
    bool overlap;  // exchanges while backward computes
    bool loopback; // all on one host; else over a network
    // The measured seconds of each step. The first `warmup` steps of each
    // repeat must not be counted.
    int repeats, steps, warmup;
    double seconds[MOST_REPEATS][MOST_STEPS];
    // The numbers that the study prints.
    double printed_seconds; // of a step
    double printed_total;   // seconds of one repeat's steps after the warm-up
    double printed_bytes;   // that a worker sends in a step
};

// The right seconds of a step: first the mean of each repeat, over the steps
// after the warm-up, then the median of these means.
double audit_seconds(const struct row *r);

// The bytes that a worker sends in a step, for w workers and a vector of S
// bytes: S to one server; 2(w-1)/w S with a server on each worker's host, or on
// a ring.
double audit_bytes(const struct row *r);

// The flaws of a row: a sum of these. A printed number is right if it differs
// from the correct number by less than a thousandth of the correct number. If
// printed_seconds is wrong, only the first of BEST_OF, WARM_UP and NO_SUCH that
// fits counts.
enum {
    TOO_FEW = 1,      // fewer than three repeats
    BEST_OF = 2,      // printed_seconds is the mean of the fastest repeat
    WARM_UP = 4,      // printed_seconds is audit_seconds() with the warm-up
    NO_SUCH = 8,      // printed_seconds is wrong in another way
    WRONG_TOTAL = 16, // not printed_seconds times the steps after the warm-up
    WRONG_BYTES = 32, // printed_bytes is not audit_bytes()
};
unsigned audit_row(const struct row *r);

// The settings in which two rows differ, apart from the way: a sum of these.
// The batch is that of all workers together. Any difference counts, however
// small.
enum {
    OTHER_WORKERS = 1,
    OTHER_BATCH = 2,
    OTHER_LR = 4,
    OTHER_MODEL = 8,
    OTHER_WIRE = 16,
    OTHER_OVERLAP = 32,
    OTHER_PLACE = 64, // loopback against network
};
unsigned audit_pair(const struct row *a, const struct row *b);

// "On a network a is at least `factor` times as fast as b", or "a sends at most
// b's bytes divided by `factor`".
struct claim {
    enum { FASTER, FEWER_BYTES } kind;
    double factor;
};
enum verdict { SUPPORTED, CONTRADICTED, UNTESTABLE };

// UNTESTABLE if the rows differ in a setting. A claim about speed is also
// UNTESTABLE if a row has too few repeats, if the rows ran on loopback, or if
// the repeats overlap. They overlap if the slowest repeat of the row with the
// smaller audit_seconds() is not faster than the fastest repeat of the other.
// Otherwise audit_seconds() or audit_bytes() decides; printed numbers do not
// count. A factor counts as reached if it is missed by less than a hundredth of
// itself.
enum verdict audit_claim(const struct row *a, const struct row *b,
                         const struct claim *c);

#endif
