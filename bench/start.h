// start.h - lets all members begin at the same moment, by their clocks.
//
// Members leave a barrier tens of microseconds apart. A small message takes
// less time than that, so it could arrive before its receiver has begun. So
// worker 0 names a moment in the future, and everybody waits for it. On one
// host all members read the same clock. On several hosts the clocks' offsets
// are found with barriers (telemetry/align.h).

#pragma once

#include <stdint.h>

struct cluster;

struct start {
    struct cluster *cluster;
    int64_t offset_ns; // this member's clock minus worker 0's
    uint64_t at_ns;    // the moment, by this member's clock
};

// All members call these together. They return 0, or -1 after fail().
// start_wait() returns at the moment, or later on a member that did not get a
// core in time.
int start_open(struct start *s, struct cluster *cluster);
int start_wait(struct start *s);

// Seconds since the moment of the last start_wait(), which is the same for all
// members.
double start_seconds(const struct start *s);
