// plan.h - which part of a vector travels when: the ring's timetable.
//
// A vector of n elements is cut into `world` chunks, chunk c of worker c. In
// message m (of 2(world-1)) worker r sends chunk r-1-m to its right and
// receives chunk r-2-m from its left, modulo world:
//
//     world 3, reduce-scatter     all-gather
//     message     0       1       2       3
//     worker 0  sends 2, sends 1, sends 0, sends 2
//     worker 1  sends 0, sends 2, sends 1, sends 0
//     worker 2  sends 1, sends 0, sends 2, sends 1
//
// What it sends is what it received the message before: with its own share
// added in the first half (chunk c is complete when it reaches worker c), as it
// came in the second. Patarasuk and Yuan, "Bandwidth optimal all-reduce
// algorithms", 2009.
//
// Payload out of worker r, exactly: every chunk but its own in the first half,
// every chunk but its right neighbour's in the second,
//
//     2n - len(r) - len(r+1),   len(c) = floor(n/world) + (c < n mod world)
//
// elements, and 2n - len(r-1) - len(r) in: 2(world-1)/world n where world
// divides n. (In the table: worker 0 sends 2, 1, then 0, 2: all but 0 and 1.)

#ifndef HOROVOD_RING_PLAN_H
#define HOROVOD_RING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum direction { IN, OUT };

struct span {
    size_t off, n; // elements
};

// A vector on its way round: summed, or copied from worker 0 to all.
struct task {
    bool bcast;
    float *data;
    size_t n;
};

// Chunk c of a vector of n elements.
struct span plan_chunk(size_t n, int world, int c);

int plan_messages(const struct task *t, int rank, int world, enum direction d);
struct span plan_span(const struct task *t, int rank, int world,
                      enum direction d, int message);

// A sent message holds what came in so many messages before; the first ones
// are this worker's own.
int plan_lag(const struct task *t, int rank);

// Elements that one sum of n elements moves into or out of a worker: the law.
size_t plan_elements(size_t n, int rank, int world, enum direction d);

#endif
