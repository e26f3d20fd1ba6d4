// shm_steps.h - the steps of a verb in shared memory. In each step a member
// does these parts:
//
//     show        let the others see this member's numbers
//     work        read the numbers that the others show: sum, or copy
//     take back   copy the sums that the others have written over its numbers
//
// A vector that can be mapped needs one step. Any other vector passes through
// the places in the members' slots, in many steps, each with a slice of every
// chunk. A short vector is copied whole into a place, and every member sums it
// for itself.

#pragma once

#include "group/group.h"
#include "horovod_ring/counters.h"
#include "horovod_ring/regions.h"

// How a vector is shown: whole in a place, in slices through places, or mapped.
enum way { WHOLE, SLICES, MAPPED };

struct members {
    int rank, size;
    size_t grain; // of chunks
    const struct counters *counters;
};

// A verb on its way.
struct task {
    const struct members *m;
    struct group_op op;
    enum way way;
    struct region *region; // MAPPED: the vector is a part of it
    size_t most;           // SLICES: elements of a slice of one chunk
    uint64_t steps;
};

// The progress of a member. All members count the same steps.
struct cursor {
    uint64_t op, part; // the next step: its verb, and its number in the verb
    uint64_t step;     // steps so far
    uint64_t places;   // how many of these use places
};

// Plans the steps of a verb. Its vector may be a part of a region.
void steps_plan(struct task *t, const struct members *m,
                const struct group_op *op, struct region *regions);

// The parts of the step at a cursor.
void steps_show(const struct task *t, const struct cursor *c);
void steps_work(const struct task *t, const struct cursor *c);
void steps_take_back(const struct task *t, const struct cursor *c);

// Whether others may still read or write the numbers that this member shows
// after it has done its own part. (Reads of a place need no such wait: see
// may_show() in ring_shm.c.)
bool steps_await_others(const struct task *t);
