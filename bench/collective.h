// collective.h - runs and times one verb for one row of collect_perf, and
// checks its numbers and its bytes.
//
// Members' numbers are those of table_number().

#pragma once

#include "bench/collect_plan.h"

struct cluster;
struct device;

// Shared by all rows of this member.
struct collective {
    const struct collect_plan *plan;
    struct cluster *cluster;
    struct device *dev;
    int64_t offset_ns; // this member's clock minus worker 0's
    uint64_t start_ns; // when the present call begins, by this member's clock
    float *own, *received; // `most` elements each, consecutive
    size_t most;
    struct group *groups[COLLECT_ROWS]; // rows of one carrier share a group
};

struct collect_check {
    double wrong; // number of wrong results on this member
    // The bytes that this member's group counted as sent, and those of the law.
    // -1: not known for a library.
    double sent, law;
};

// Opens vectors of `most` elements, and a group for each carrier of the rows
// that are used. All members call it. Returns 0, or -1 after fail(). Call
// collective_close() in both cases.
int collective_open(struct collective *c, const struct collect_plan *plan,
                    struct cluster *cluster, size_t most);
void collective_close(struct collective *c);

// Runs one verb on n elements. All members call it, and begin at one moment.
// *seconds becomes the time from that moment until this member is done. Returns
// 0, or -1 after fail().
int collective_time(struct collective *c, int row, enum collect_verb verb,
                    size_t n, double *seconds);

// Runs the verb once more, and checks its results. Returns 0, or -1 after
// fail().
int collective_check(struct collective *c, int row, enum collect_verb verb,
                     size_t n, struct collect_check *out);
