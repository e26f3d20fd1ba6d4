// derive.h - chooses the settings of a backend that the user left open.

#ifndef SYNC_DERIVE_H
#define SYNC_DERIVE_H

#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct backend;

// Chooses each setting that is 0 or "auto" in *s, for a backend, `world`
// workers and n parameters:
//
//     bucket      by block, if blocks are lent
//     bucket_mb   a fortieth of all, within 1 .. 25 MiB (bucket_usual())
//     fusion_mb   a quarter MiB a worker, and at least 1: a group of buckets
//                 costs 2(world-1) latencies, so it must grow with the world; 0
//                 if the backend does not fuse, and for blocks
//     servers     one, or one beside each worker, as the row says
//     update      with servers: worker, if the wire has 16 bits and a step adds
//                 whole rounds; else server. Without servers: worker
//     every       1, if gradients travel
//     transport   with servers: zmq. The ring chooses its own when it opens:
//                 memory, if all workers share a host
//
// The code that reads any other setting decides about its "auto". n of 0: not
// known yet, so bucket_mb stays.
void sync_derive(struct sync_settings *s, const struct backend *b, int world,
                 size_t n);

// Whether no answer comes before all gradients have come. So it is with servers
// that update, and with an owner.
bool sync_holds(const struct sync_settings *s, const struct backend *b);

// If worker 0 adds the gradients of all (TRAFFIC_OWNER), it takes them from
// each other worker in pieces. These are a piece's elements, and the number of
// pieces with room: one is added while the next arrives.
enum { OWNER_PIECE = 1 << 18, OWNER_SETS = 2 };

// The elements that a worker holds of vectors of n elements, with derived
// settings. `work`: the elements of the blocks that a model works on at once.
//
//     shard      params   grads   slot   buffers
//     (others)   n        n       n      none; servers update: slot 0
//     1          n        n       n/w    none
//     2          n        n/w     n/w    work, of gradients
//     3          n/w      n/w     n/w    work, of gradients and of weights
//
// n/w may be more, by up to a grain for each bucket (zero/shards.h). Buffers of
// weights are in the model's format, all else is fp32. If parameters or
// gradients are in shards, only the strategy holds them. It lends them to the
// model a block at a time (sync.h).
struct sync_share {
    bool lends_params, lends_grads;
    bool late_params; // whole, but parts of them come from other workers
    size_t params, grads;
    size_t slot; // of each slot of the optimiser's state
    size_t kept; // of further vectors, listed in outer/outer.c
    size_t weight_buffers, grad_buffers;
};

struct sync_share sync_share(const struct sync_settings *s,
                             const struct backend *b, int world, size_t n,
                             size_t work);

#endif
