// plan.h - the ring's timetable: which part of a vector travels when.
//
// A vector of n elements has `world` chunks; chunk c belongs to worker c
// (group_chunk_of()). An all-reduce has 2(world-1) messages. In message m,
// worker r sends chunk r-1-m to its right and receives chunk r-2-m from its
// left, mod world:
//
//     world 3, reduce-scatter     all-gather
//     message     0       1       2       3
//     worker 0  sends 2, sends 1, sends 0, sends 2
//     worker 1  sends 0, sends 2, sends 1, sends 0
//     worker 2  sends 1, sends 0, sends 2, sends 1
//
// A worker sends the chunk that it received in the message before. In the first
// half it has added its own share (chunk c is complete when it reaches worker
// c); in the second half it passes the chunk on unchanged. The two halves are
// also verbs of their own, reduce_scatter and all_gather. Source: Patarasuk and
// Yuan, "Bandwidth optimal all-reduce algorithms", 2009. A broadcast and a
// reduce are one message of the whole vector along a chain that begins, or
// ends, at the root.
//
// Payload out of and into worker r, in elements; len(c) is the length of chunk
// c:
//
//     verb              out                        in
//     reduce_scatter    n - len(r)                 n - len(r-1)
//     all_gather        n - len(r+1)               n - len(r)
//     all_reduce        the sum of these two       the sum of these two
//     broadcast         n; 0 left of the root      n; 0 at the root
//     reduce            n; 0 at the root           n; 0 right of the root
//     send, recv        n of a send                n of a recv
//     all_to_all        what it gives, less        what it takes, less
//                       its own chunk              its own chunk
//
// If world divides n, an all-reduce moves 2(world-1)/world n each way.

#pragma once

#include "group/group.h"

enum direction { IN, OUT };

// A worker's position in its ring, and the grain of the chunks.
struct plan {
    int rank, world;
    size_t grain; // of chunks
};

// Whether a verb is one message of the whole vector along a chain.
bool plan_is_chain(const struct group_op *op);

// How many messages a verb has in one direction, and which elements of the
// vector message number `message` has.
int plan_messages(const struct plan *p, const struct group_op *op,
                  enum direction d);
struct group_chunk plan_span(const struct plan *p, const struct group_op *op,
                             enum direction d, int message);

// What a worker sends as message m is what it received as message m -
// plan_lag(). The first messages (plan_is_own()) are its own numbers.
int plan_lag(const struct plan *p, const struct group_op *op);
bool plan_is_own(const struct plan *p, const struct group_op *op, int message);

// For a message that comes in: whether this worker adds its own share to it,
// and whether the result is complete after that.
bool plan_adds(const struct plan *p, const struct group_op *op, int message);
bool plan_completes(const struct plan *p, const struct group_op *op,
                    int message);

// How many elements a verb moves into or out of a worker: the law above.
size_t plan_elements(const struct plan *p, const struct group_op *op,
                     enum direction d);
