// members.h - opens the group of a strategy's workers, on the carrier that
// sync_open() has chosen.

#ifndef SYNC_MEMBERS_H
#define SYNC_MEMBERS_H

#include "sync/sync.h"

struct group;

// What differs between strategies.
struct members_need {
    size_t grain;   // of chunks, in elements; 0: the carrier's own grain
    size_t largest; // elements of the largest vector that is sent
    size_t depth;   // exchanges that may be under way at once
    bool pairs;     // send and recv will be used
};

// Opens s->carrier, and sets s->scale. All workers call it. The caller ends it
// with group_close(). Returns NULL after fail().
struct group *members_open(struct sync *s, const struct members_need *need);

// Copy worker 0's v (job.n elements) to v on every worker. Returns 0, or -1
// after fail().
int members_broadcast(struct sync *s, struct group *g, float *v);

// The number of elements of the largest of n buckets.
size_t members_largest(const struct bucket *b, int n);

#endif
