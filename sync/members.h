// members.h - opens the group of a strategy's workers, on the carrier that
// sync_open() has chosen.

#pragma once

#include "sync/sync.h"

// What differs between strategies.
struct members_need {
    size_t grain;   // of chunks, in elements; 0: the carrier's own grain
    size_t largest; // elements of the largest vector that is sent
    size_t depth;   // exchanges that may be under way at once
    bool pairs;     // send and recv will be used
    bool star;      // only from and to worker 0
};

// Opens s->group on s->carrier, and sets s->scale. All workers call it. 0, or
// -1 after fail().
int members_open(struct sync *s, const struct members_need *need);

// Waits for a ticket of s->group, and copies its counts to s->stats. 0, or -1
// after fail().
int members_await(struct sync *s, uint64_t ticket);

// Copy worker 0's v (n elements) to v on every worker, over s->group. Without a
// group it does nothing. 0, or -1 after fail().
int members_broadcast(struct sync *s, float *v, size_t n);

// The same for slot `slot` of the state or for SYNC_PARAMS, by the strategy's
// own broadcast() if it has one.
int members_copy(struct sync *s, int slot, float *v);

// The number of elements of the largest of n buckets.
size_t members_largest(const struct bucket *b, int n);
