// members.h - opens the group of a strategy's workers, on the carrier that
// sync_open() has chosen.

#ifndef SYNC_MEMBERS_H
#define SYNC_MEMBERS_H

#include "sync/sync.h"

struct group;

// What differs between strategies.
struct members_need {
    size_t grain;   // of chunks, in elements; 0: the carrier's
    size_t largest; // elements of the largest vector that is sent
    size_t depth;   // tickets that may be open at once
    bool pairs;     // send and recv will be used
};

// Opens s->carrier, and sets s->scale. NULL after fail(). All workers call it.
// group_close() ends it.
struct group *members_open(struct sync *s, const struct members_need *need);

// v (job.n elements) on every worker := worker 0's. 0, or -1 after fail().
int members_broadcast(struct sync *s, struct group *g, float *v);

// The elements of the largest of n buckets.
size_t members_largest(const struct bucket *b, int n);

#endif
