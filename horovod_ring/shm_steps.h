// shm_steps.h - a verb in shared memory: what a member does in each of its
// steps.
//
//     show        let the others see this member's numbers
//     work        read what the others show: sum, or copy
//     take back   sums that the others have written where they were shown
//
// Where a vector can be mapped one step is enough. Any other passes through the
// places in the members' slots: many steps, each of a slice of every chunk. A
// short vector goes through them whole, and every member sums it for itself.

#ifndef HOROVOD_RING_SHM_STEPS_H
#define HOROVOD_RING_SHM_STEPS_H

#include "group/group.h"
#include "horovod_ring/counters.h"
#include "horovod_ring/regions.h"

enum way { WHOLE, SLICES, MAPPED }; // through places: whole, in slices; mapped

// A verb on its way.
struct task {
    struct group_op op;
    enum way way;
    struct region *region; // MAPPED: what the vector is a part of
    size_t most;           // SLICES: elements of a slice of one chunk
    uint64_t steps;
};

// How far a member is. All members count the same steps.
struct cursor {
    uint64_t op, part; // the next step: a verb and which of its steps
    uint64_t step;     // steps so far
    uint64_t places;   // those of them that use places
};

struct members {
    int rank, size;
    size_t grain; // of chunks
    const struct counters *counters;
};

// The steps of a verb, whose vector may be a part of a region.
void steps_plan(struct task *t, const struct members *m,
                const struct group_op *op, struct region *regions);

// The parts of the step at a cursor.
void steps_show(const struct members *m, const struct task *t,
                const struct cursor *c);
void steps_work(const struct members *m, const struct task *t,
                const struct cursor *c);
void steps_take_back(const struct members *m, const struct task *t,
                     const struct cursor *c);

// Whether others still read or write what this member shows when it has done
// its own part. (Places are not written again before all have: ring_shm.c.)
bool steps_await_others(const struct members *m, const struct task *t);

#endif
