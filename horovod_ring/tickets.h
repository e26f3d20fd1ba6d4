// tickets.h - the order of a group's verbs, which may be collectives and
// messages of pairs.
//
// Collectives and messages of pairs move independently. The group only needs to
// know how many verbs are complete, counted from the first without a gap.

#pragma once

#include "horovod_ring/pairs.h"

struct ticket {
    struct group_op op;
    uint64_t number; // of a collective: among the collectives
    uint64_t left;   // of another verb: messages that are not complete
};

struct tickets {
    struct pairs pairs;
    struct ticket *all; // verb k at k % depth; NULL: the job has no pairs
    size_t depth, grain;
    uint64_t posted, done;
    uint64_t vectors; // collectives posted so far
};

// Opens the pairs of a group over `ops`, if its job has pairs. Returns 0, or -1
// after fail(). tickets_close() accepts zeroed tickets.
int tickets_open(struct tickets *t, const struct streams_ops *ops,
                 const struct group *g);
void tickets_close(struct tickets *t);

// Adds one verb. A send, recv or all_to_all is posted to the pairs; then it
// returns true.
bool tickets_post(struct tickets *t, const struct group_op *op);

// Moves the messages of pairs. `vectors` is how many collectives are complete.
// *done becomes the number of complete verbs, counted from the first without a
// gap. Returns 0, or -1 after fail().
int tickets_advance(struct tickets *t, uint64_t vectors, uint64_t *done);

// If the first verb that is not complete is one of messages of pairs, returns a
// member that it waits for, and sets *verb. Else returns -1.
int tickets_awaited(const struct tickets *t, enum group_verb *verb);
