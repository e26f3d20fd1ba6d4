// tickets.h - the order of a group's verbs, of which some are pairs.
//
// Vectors of all members and messages of pairs move beside each other; the
// group is told only how many verbs are complete from the first on.

#ifndef HOROVOD_RING_TICKETS_H
#define HOROVOD_RING_TICKETS_H

#include "horovod_ring/pairs.h"

struct ticket {
    struct group_op op;
    uint64_t number; // among the vectors of all members, or in its pair's line
};

struct tickets {
    struct ticket *all; // verb k at k % depth
    size_t depth;
    uint64_t posted, done;
    uint64_t vectors; // of all members, posted so far
};

// 0, or -1 after fail(); close takes zeroed tickets.
int tickets_open(struct tickets *t, size_t depth);
void tickets_close(struct tickets *t);

// One more verb. A pair is posted to `pairs`; whether it was one.
bool tickets_post(struct tickets *t, struct pairs *p,
                  const struct group_op *op);

// How many are complete, where `vectors` of all members are.
uint64_t tickets_done(struct tickets *t, const struct pairs *p,
                      uint64_t vectors);

// The first that is not complete; NULL where all are.
const struct group_op *tickets_first(const struct tickets *t);

bool ticket_is_pair(const struct group_op *op);

#endif
