// schedule.h - textbook algorithms of broadcast, reduce, scatter and gather:
// the messages of each round.
//
// The bench, `lockstep explain` and the simulation run the same schedules;
// training uses the verbs of group.h. The root is member 0. In a round a member
// sends at most one message and receives at most one. A broadcast among 8
// members:
//
//     linear   0 sends all n elements to 1, then to 2, .. then to 7
//     tree     round 0: 0 to 4;  1: 0 to 2, 4 to 6;  2: 0 to 1, 2 to 3, 4 to 5,
//              6 to 7. In every round each member that has the vector sends it
//              to one that does not (a binomial tree).
//     chain    0 to 1 to 2 .. to 7, in pieces: while a member receives piece
//              j+1, it sends piece j
//
// In a linear scatter the root sends each member only its chunk
// (group_chunk()). In a tree a message has the chunks of the receiver and of
// all members below it. A reduce is a broadcast backwards in time: a send
// becomes a receive, which also adds. A gather is a scatter backwards in time.
//
// The time with n members, S bytes, links of latency alpha and B bytes/s in
// each direction, and pieces of c bytes:
//
//     op, algorithm                      time
//     broadcast, reduce  linear          (n-1) (alpha + S/B)
//                        tree            ceil(log2 n) (alpha + S/B)
//                        chain           (n-2 + S/c) (alpha + c/B)
//     scatter, gather    linear          (n-1) alpha + (n-1)/n S/B
//                        tree            ceil(log2 n) alpha + (n-1)/n S/B
//
// The trees and the model of time are in Thakur, Rabenseifner and Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005,
// sections 3 and 4.

#pragma once

#include "group/group.h"
#include "sync/law.h"

enum schedule_op {
    SCHEDULE_BROADCAST,
    SCHEDULE_REDUCE,
    SCHEDULE_SCATTER,
    SCHEDULE_GATHER,
    SCHEDULE_OPS
};

enum schedule_algorithm {
    SCHEDULE_LINEAR,
    SCHEDULE_TREE,
    SCHEDULE_CHAIN,
    SCHEDULE_ALGORITHMS
};

// The names, in the order of the enums, NULL-terminated.
extern const char *const schedule_op_names[];
extern const char *const schedule_algorithm_names[];

struct schedule {
    enum schedule_op op;
    enum schedule_algorithm algorithm;
    int world;    // members, 2 or more
    size_t n;     // elements, one for each member or more
    size_t piece; // chain: elements of a piece
};

// One message, as one of its two members sees it.
struct move {
    int round; // from 0
    int peer;
    bool sends, adds;        // adds: a receive adds to the member's numbers
    struct group_chunk span; // of the vector
};

// Whether there is such an algorithm: scatter and gather have no chain.
bool schedule_exists(enum schedule_op op, enum schedule_algorithm a);

// Fills *out with move number k of a member, in the order of rounds. If the
// member receives and sends in one round, the receive is first. Returns false
// if the member has no move k.
bool schedule_move(const struct schedule *s, int rank, int k, struct move *out);

// Fills out with a member's moves of one round, from move k on, which must be
// the first of its round. Returns their number: 1, or 2 (the first receives),
// or 0 if there is no move k.
int schedule_next(const struct schedule *s, int rank, int k,
                  struct move out[2]);

// The elements that a member has at the end: the root's numbers after a
// broadcast or a scatter, sums after a reduce, every member's own chunk after a
// gather.
struct group_chunk schedule_result(const struct schedule *s, int rank);

// The number of rounds until all members are done.
int schedule_rounds(const struct schedule *s);

// Elements that a member sends in all.
size_t schedule_sends(const struct schedule *s, int rank);

// The time in the table above, for any n: `hops` is the number of messages one
// after the other on the longest path, `share` is their bytes divided by the
// vector's bytes.
struct law schedule_law(const struct schedule *s);
