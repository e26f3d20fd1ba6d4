// plan.h - which part of a vector travels when: the ring's timetable.
//
// A vector of n elements is cut into `world` chunks, chunk c of worker c
// (group_chunk()). In message m of an all-reduce (of 2(world-1)) worker r sends
// chunk r-1-m to its right and receives chunk r-2-m from its left, mod world:
//
//     world 3, reduce-scatter     all-gather
//     message     0       1       2       3
//     worker 0  sends 2, sends 1, sends 0, sends 2
//     worker 1  sends 0, sends 2, sends 1, sends 0
//     worker 2  sends 1, sends 0, sends 2, sends 1
//
// What it sends is what it received the message before: with its own share
// added in the first half (chunk c is complete when it reaches worker c), as it
// came in the second. The halves alone are the verbs reduce_scatter and
// all_gather. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms",
// 2009. A broadcast and a reduce are one message of the whole vector along the
// chain that begins, or ends, at the root.
//
// Payload out of and into worker r, exactly, in elements; len(c) is the length
// of chunk c:
//
//     verb              out                        in
//     reduce_scatter    n - len(r)                 n - len(r-1)
//     all_gather        n - len(r+1)               n - len(r)
//     all_reduce        both                       both
//     broadcast         n, 0 left of the root      n, 0 at the root
//     reduce            n, 0 at the root           n, 0 right of the root
//
// An all-reduce is 2(world-1)/world n where world divides n.

#ifndef HOROVOD_RING_PLAN_H
#define HOROVOD_RING_PLAN_H

#include "group/group.h"

enum direction { IN, OUT };

// Where a worker stands in its ring, and how vectors are cut.
struct plan {
    int rank, world;
    size_t grain; // of chunks
};

// Whether a verb is one message of the whole vector along a chain.
bool plan_is_chain(const struct group_op *op);

// How many messages a verb has in one direction, and the elements of one.
int plan_messages(const struct plan *p, const struct group_op *op,
                  enum direction d);
struct group_chunk plan_span(const struct plan *p, const struct group_op *op,
                             enum direction d, int message);

// A sent message holds what came in so many messages before; the first ones
// (plan_is_own()) are this worker's own numbers.
int plan_lag(const struct plan *p, const struct group_op *op);
bool plan_is_own(const struct plan *p, const struct group_op *op, int message);

// Of a message that comes in: whether this worker's share is added to it, and
// whether its numbers are then the result.
bool plan_adds(const struct plan *p, const struct group_op *op, int message);
bool plan_completes(const struct plan *p, const struct group_op *op,
                    int message);

// Elements that a verb moves into or out of a worker: the law above.
size_t plan_elements(const struct plan *p, const struct group_op *op,
                     enum direction d);

#endif
