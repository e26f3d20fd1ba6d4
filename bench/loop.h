// loop.h - a lower bound of the time of a ring over TCP: a bare poll loop.
//
// One thread per worker, no headers, no slices. In each of the ring's messages
// a worker sends one chunk and receives another, adds the numbers as soon as
// they arrive, and polls when it can neither send nor receive. Our ring over
// TCP does more: several buckets, errors that name a rank, 16-bit wires. That
// must cost little.

#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

#include "sync/sync.h"

// A strategy for benches. It sums the whole vector, after backward.
extern const struct sync_ops sync_loop;

#endif
