// loop.h - a lower bound of the time of a ring over TCP: a bare poll loop.
//
// There is one thread per worker, and there are no headers and no slices. In
// each of the ring's messages a worker sends one chunk and receives another,
// adds the numbers as soon as they arrive, and polls when it can neither send
// nor receive. Our ring over TCP does more: it has several buckets, errors that
// name a rank, and 16-bit wires. These must cost little.

#pragma once

#include "sync/sync.h"

// A strategy for benches. It sums the whole vector, after backward.
extern const struct sync_ops sync_loop;
