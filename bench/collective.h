// collective.h - one verb, by one row of collect_perf: done, timed, its numbers
// and its bytes checked.
//
// Members' numbers are small integers that differ by member and element: sums
// are exact, and every result is known.

#ifndef BENCH_COLLECTIVE_H
#define BENCH_COLLECTIVE_H

#include "bench/collect_plan.h"
#include "bench/start.h"

struct cluster;
struct device;

// What all rows of this member share.
struct collective {
    const struct collect_plan *plan;
    struct cluster *cluster;
    struct device *dev;
    struct start start;
    float *own, *landing; // `most` elements each, one behind the other
    size_t most;
    struct group *groups[COLLECT_ROWS]; // rows of one carrier share a group
};

struct collect_check {
    double wrong; // results on this member
    // Bytes that this member's group counted as sent; those of the law. -1: the
    // library does not tell.
    double sent, law;
};

// Vectors of `most` elements, and a group for each carrier of the rows that are
// used. A call of all members. 0, or -1 after fail(); collective_close()
// follows either way.
int collective_open(struct collective *c, const struct collect_plan *plan,
                    struct cluster *cluster, size_t most);
void collective_close(struct collective *c);

// One verb on n elements, which all members begin at one moment: *seconds from
// then until this member is done. Calls of all members; 0, or -1 after
// fail().
int collective_time(struct collective *c, int row, enum collect_verb verb,
                    size_t n, double *seconds);

// The same once more, and what came of it.
int collective_check(struct collective *c, int row, enum collect_verb verb,
                     size_t n, struct collect_check *out);

#endif
