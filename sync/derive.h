// derive.h - the settings of a backend that nobody asked for.

#ifndef SYNC_DERIVE_H
#define SYNC_DERIVE_H

#include "config/settings.h"

#include <stddef.h>

struct backend;

// Decide what is 0 or "auto" in *s for a backend, `world` workers and n
// parameters:
//
//     bucket_mb   a fortieth of all, within 1 .. 25 MiB (bucket_usual())
//     fusion_mb   a quarter MiB a worker, and at least 1: a group of buckets
//                 costs 2(world-1) latencies, so it must grow with the world; 0
//                 where the backend does not fuse
//     servers     one, or one beside each worker, as the row says
//     update      where there are servers: worker, if the wire is of 16 bits
//                 and a step adds whole rounds; else server. Without: worker
//     transport   where there are servers: zmq. The ring's is found out when it
//                 is opened: memory, if all workers share a host
//
// Every other "auto" is its reader's. n of 0: not known yet, bucket_mb stays.
void sync_derive(struct sync_settings *s, const struct backend *b, int world,
                 size_t n);

// Elements of each slot of the optimiser's state that a worker holds, given
// derived settings: all of n; its share, where workers have shards; none, where
// servers update.
size_t sync_state_elements(const struct sync_settings *s,
                           const struct backend *b, int world, size_t n);

#endif
