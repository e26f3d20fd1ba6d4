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
    struct pairs pairs;
    struct ticket *all; // verb k at k % depth; NULL: the job has no pairs
    size_t depth;
    uint64_t posted, done;
    uint64_t vectors; // of all members, posted so far
};

// For the pairs of a group over `ops`, where its job has them. 0, or -1 after
// fail(); close takes zeroed tickets.
int tickets_open(struct tickets *t, const struct pairs_ops *ops,
                 const struct group *g);
void tickets_close(struct tickets *t);

// One more verb. A pair is posted to `pairs`; whether it was one.
bool tickets_post(struct tickets *t, const struct group_op *op);

// Move the messages of pairs. *done: how many verbs are complete, where
// `vectors` of all members are. 0, or -1 after fail().
int tickets_advance(struct tickets *t, uint64_t vectors, uint64_t *done);

// The first verb that is not complete, if it is a pair; else NULL.
const struct group_op *tickets_first_pair(const struct tickets *t);

#endif
