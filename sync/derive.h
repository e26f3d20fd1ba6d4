// derive.h - chooses the settings of a backend that the user left open.

#pragma once

#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct backend;

// Chooses each setting in *s that is 0 or "auto", for backend b, `world`
// workers and n parameters:
//
//     bucket      "block", if blocks are lent
//     bucket_mb   a fortieth of all parameters, within 1 .. 25 MiB; in a ring
//                 of whole gradients at least a quarter MiB for each worker
//                 (bucket_usual()): a sum costs 2(world-1) latencies there, so
//                 a bucket must grow with the world
//     servers     one, or one beside each worker, as the backend's row says
//     update      with servers: "worker", if the wire has 16 bits and a step
//                 adds the gradients of all workers; else "server". Without
//                 servers: "worker"
//     every       1, if gradients travel
//     transport   with servers: zmq. The ring chooses when it opens: shared
//                 memory, if all workers are on one host
//
// Any other setting that is "auto" is decided by the code that reads it. n = 0
// means that n is not known yet: bucket_mb stays as it is.
void sync_derive(struct sync_settings *s, const struct backend *b, int world,
                 size_t n);

// Whether replies are deferred: no reply is sent before the gradients of all
// workers have arrived. This holds for servers that update, and for an owner
// (TRAFFIC_OWNER).
bool sync_holds(const struct sync_settings *s, const struct backend *b);

// If worker 0 adds the gradients of all workers (TRAFFIC_OWNER), it takes them
// from each other worker in pieces of OWNER_PIECE elements. It has OWNER_SETS
// receive buffers for each worker: it adds one piece while the next arrives.
enum { OWNER_PIECE = 1 << 18, OWNER_SETS = 2 };

// The number of elements that a worker holds of vectors of n elements, with
// derived settings. `work`: the elements of the blocks that a model uses at
// once.
//
//     shard      params   grads   slot   buffers
//     (others)   n        n       n      none; servers update: slot 0
//     1          n        n       n/w    none
//     2          n        n/w     n/w    work, of gradients
//     3          n/w      n/w     n/w    work, of gradients and of weights
//
// n/w may be larger by up to one grain for each bucket (zero/shards.h). Buffers
// of weights are in the model's format; all else is fp32. Parameters or
// gradients in shards are held by the strategy only, which lends them to the
// model a block at a time (sync.h).
struct sync_share {
    bool lends_params, lends_grads;
    bool late_params; // params are whole, but parts of them arrive late
    size_t params, grads;
    size_t slot; // of each slot of the optimiser's state
    size_t kept; // elements of further vectors, listed in outer/outer.c and
                 // sync/squeezed.c
    size_t weight_buffers, grad_buffers;
};

// For `world` workers. *s: after sync_derive().
struct sync_share sync_share(const struct sync_settings *s,
                             const struct backend *b, int world, size_t n,
                             size_t work);
