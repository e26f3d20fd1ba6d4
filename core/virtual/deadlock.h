// deadlock.h - who waits for whom, in one sentence.

#ifndef VIRTUAL_DEADLOCK_H
#define VIRTUAL_DEADLOCK_H

#include "virtual/virtual.h"

// A call that does not return: rank sends to, or receives from, peer.
struct deadlock_call {
    int rank, peer; // peer -1: anybody
    bool sends;
    long number; // of the messages from one to the other
};

// Write into result->deadlock the shortest circle among the n calls, each of
// which waits for its peer; else the first call whose peer has ended.
void deadlock_tell(struct virtual_result *result,
                   const struct deadlock_call *calls, int n, double now);

#endif
