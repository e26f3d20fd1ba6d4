// deadlock.h - describes a deadlock in one sentence.

#pragma once

#include "virtual/virtual.h"

// A call that does not return: rank sends to, or receives from, peer.
struct deadlock_call {
    int rank, peer; // peer -1: anybody
    bool sends;
    long number; // of the message, counted for this direction between the two
};

// Writes a sentence to result->deadlock. It names the shortest cycle among the
// n calls, in which each call waits for the next one. If there is no cycle, it
// names a call whose peer has ended, or else the first call. `now` is the time
// in s.
void deadlock_tell(struct virtual_result *result,
                   const struct deadlock_call *calls, int n, double now);
