// loop.h - the lower bound of a ring over TCP: a bare poll loop.
//
// One thread a worker, no headers, no slices: in each of the ring's messages a
// worker sends its chunk and receives the other's, adds what has just come in,
// and polls when neither moves. What our ring over TCP does beyond this
// (several buckets, errors that name a rank, 16-bit wires) must cost little.

#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

#include "sync/sync.h"

// A strategy for benches: the whole vector, after backward.
extern const struct sync_ops sync_loop;

#endif
