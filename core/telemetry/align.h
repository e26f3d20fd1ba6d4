// align.h - how far the clocks of two hosts are apart, from barriers alone.
//
// All workers enter a barrier and leave it, each noting both times by its own
// clock. Nobody leaves before everybody has entered, so each round bounds the
// offset from both sides:
//
//     entered_mine - left_zero  <=  offset  <=  left_mine - entered_zero
//
// The narrowest bounds of all rounds give the middle, and half their distance
// is the largest possible error.

#ifndef TELEMETRY_ALIGN_H
#define TELEMETRY_ALIGN_H

#include <stdint.h>

struct align_round {
    uint64_t entered_ns, left_ns;
};

struct align {
    int64_t offset_ns; // my clock minus worker 0's
    int64_t error_ns;  // at most so far off, either way
};

// Processes that read the same number here read the same clock; 0: not known.
uint64_t align_host(void);

// -1 after fail() when the rounds contradict each other: a clock was set.
int align_clocks(const struct align_round *mine, const struct align_round *zero,
                 int rounds, struct align *out);

#endif
