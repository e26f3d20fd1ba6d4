// block_copies.h - lets a strategy that lends blocks of host memory serve a
// GPU.
//
//     host     [ A | C | B | D ]      the strategy's buffers (struct sync_lent)
//                    |    ^
//               take |    | ready     weights go up, gradients come down
//                    v    |
//     device   [ A | C | B | D ]      the model's
//
// A block has the same place in both. The weights of a block go up while the
// device computes with the block before. Its gradient comes down when the
// device has computed it; the host waits for that.

#pragma once

#include "sync/sync.h"

struct block_copies;

// Allocates the device's buffers, of the sizes in s->lent, which the strategy
// has set. Returns 0, or -1 after fail().
int block_copies_open(struct block_copies **out, const struct sync *s);
void block_copies_close(struct block_copies **c);

// The strategy has lent block b (from the start of the vector) at `host`.
// Copies its weights to the device, and returns when the host's may change.
// Writes where the block is on the device to *device. Returns 0, or -1 after
// fail().
int block_copies_take(struct block_copies *c, int b,
                      const struct sync_place *host, struct sync_place *device);

// The work that fills the gradient of block b is queued. Copies the gradient to
// the host and waits for it. Returns 0, or -1 after fail().
int block_copies_ready(struct block_copies *c, int b);
