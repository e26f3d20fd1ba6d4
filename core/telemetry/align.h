// align.h - the offset between the clocks of two hosts, from barriers alone.
//
// All workers enter a barrier and leave it, and each notes both times by its
// own clock. No worker leaves before all have entered, so each round bounds the
// offset from both sides:
//
//     entered_mine - left_zero  <=  offset  <=  left_mine - entered_zero
//
// The result is the middle between the narrowest bounds of all rounds. The
// result's largest possible error is half the distance of these bounds.

#pragma once

#include <stdint.h>

struct align_round {
    uint64_t entered_ns, left_ns;
};

struct align {
    int64_t offset_ns; // my clock minus worker 0's
    int64_t error_ns;  // largest error of offset_ns, either way
};

// A number for the clock of this process: processes with the same number have
// the same clock. 0: not known.
uint64_t align_host(void);

// Computes the offset from mine[rounds] and worker 0's zero[rounds]. 0, or -1
// after fail() if the rounds contradict each other, because a clock was set.
int align_clocks(const struct align_round *mine, const struct align_round *zero,
                 int rounds, struct align *out);
