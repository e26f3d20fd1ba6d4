// copies.h - lets a backend that knows host memory only serve a GPU.
//
//     sync_ready(b)   begin to copy bucket b to the host         (in sync.c)
//     sync_step()     for each bucket: wait for its copy, then let the backend
//                     send it; meanwhile the GPU goes on with backward. Then
//                     copy the reduced gradient to the GPU, which updates. If
//                     servers update, copy their new parameters to the GPU.
//
// The backend's job points at the host copies, and the backend cannot tell the
// difference. On the CPU no copies are made, unless staging=always asks for
// them (for tests).
//
// A strategy that lends blocks of host memory serves a GPU by copies of blocks:
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
//
// Opening returns 0, or -1 after fail(). Without copies these functions do
// nothing.

#pragma once

#include "sync/sync.h"

struct staging;

// The vectors on the device, and their host copies. The gradients may be NULL.
struct copies {
    float *params, *grads;
    struct staging *of_params, *of_grads;
};

// Opens s->copies, if the backend needs them: then s->job's vectors become the
// host copies.
int copies_open(struct sync *s);
void copies_close(struct sync *s);

// copies_ready: the work that fills bucket b is queued on the compute queue;
// queues its copy to the host behind that. copies_await: waits until that copy
// is complete.
void copies_ready(const struct sync *s, int b);
void copies_await(const struct sync *s, int b);

// copies_fetch_params: copies all parameters to the host, and waits for the
// copy. The others copy a whole vector to the device, before the compute
// queue's next work.
void copies_fetch_params(const struct sync *s);
void copies_send_params(const struct sync *s);
void copies_send_grads(const struct sync *s);

// Opens s->block_copies, if the backend needs them, with buffers of the sizes
// in s->lent, which the strategy has set.
int block_copies_open(struct sync *s);
void block_copies_close(struct sync *s);

// The strategy has lent block b (from the start of the vector) at s->place.
// Copies its weights to the device, and returns when the host's may change.
// *device becomes the place of the block on the device.
void block_copies_take(struct sync *s, int b, struct sync_place *device);

// The work that fills the gradient of block b is queued. Copies the gradient to
// the host and waits for it.
void block_copies_ready(struct sync *s, int b);
