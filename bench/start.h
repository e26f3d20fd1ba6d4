// start.h - members that begin at one moment, by their clocks.
//
// A barrier is left by one member tens of microseconds before another: longer
// than a small message takes, so that a receiver may find it there already. So
// worker 0 names a moment that is still to come, and everybody waits for it. On
// one host all read one clock; else the offsets are found from barriers
// (telemetry/align.h).

#ifndef BENCH_START_H
#define BENCH_START_H

#include <stdint.h>

struct cluster;

struct start {
    struct cluster *cluster;
    int64_t offset_ns; // this member's clock minus worker 0's
    uint64_t at_ns;    // the moment, by this member's clock
};

// Calls of all members; 0, or -1 after fail(). start_wait() returns at the
// moment, or later on a member that was not given a core in time.
int start_open(struct start *s, struct cluster *cluster);
int start_wait(struct start *s);

// Seconds since the moment, the same moment for all.
double start_seconds(const struct start *s);

#endif
