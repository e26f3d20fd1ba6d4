// derive.h - the settings of a backend that nobody asked for.

#ifndef SYNC_DERIVE_H
#define SYNC_DERIVE_H

#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct backend;

// Decide what is 0 or "auto" in *s for a backend, `world` workers and n
// parameters:
//
//     bucket      by block, where blocks are lent
//     bucket_mb   a fortieth of all, within 1 .. 25 MiB (bucket_usual())
//     fusion_mb   a quarter MiB a worker, and at least 1: a group of buckets
//                 costs 2(world-1) latencies, so it must grow with the world; 0
//                 where the backend does not fuse, and for blocks
//     servers     one, or one beside each worker, as the row says
//     update      where there are servers: worker, if the wire is of 16 bits
//                 and a step adds whole rounds; else server. Without: worker
//     every       1, where gradients travel
//     transport   where there are servers: zmq. The ring's is found out when it
//                 is opened: memory, if all workers share a host
//
// Every other "auto" is its reader's. n of 0: not known yet, bucket_mb stays.
void sync_derive(struct sync_settings *s, const struct backend *b, int world,
                 size_t n);

// Whether nothing is answered before all gradients have come: by servers that
// update, or by an owner.
bool sync_holds(const struct sync_settings *s, const struct backend *b);

// Where worker 0 adds everybody's gradients (TRAFFIC_OWNER): elements that it
// takes from each other worker at a time, and how many such pieces have room;
// one is added while the next arrives.
enum { OWNER_PIECE = 1 << 18, OWNER_SETS = 2 };

// What a worker holds of vectors of n elements, given derived settings, in
// elements; `work` is that of the blocks that a model works on at once:
//
//     shard      params   grads   slot   buffers
//     (others)   n        n       n      none; servers update: slot 0
//     1          n        n       n/w    none
//     2          n        n/w     n/w    work, of gradients
//     3          n/w      n/w     n/w    work, of gradients and of weights
//
// n/w is up to a grain a bucket more (zero/shards.h). Buffers of weights are in
// the model's format, all else is fp32. Where parameters or gradients are in
// shards, the strategy lends them a block at a time (sync.h), and nobody else
// holds them.
struct sync_share {
    bool lends_params, lends_grads;
    bool late_params; // whole, but parts of them come from other workers
    size_t params, grads;
    size_t slot; // of each slot of the optimiser's state
    size_t kept; // of further vectors: outer/outer.c says which
    size_t weight_buffers, grad_buffers;
};

struct sync_share sync_share(const struct sync_settings *s,
                             const struct backend *b, int world, size_t n,
                             size_t work);

#endif
