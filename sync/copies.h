// copies.h - lets a backend that knows host memory alone serve a GPU.
//
//     sync_ready(b)   begin to copy bucket b down                (the door)
//     sync_step()     for each bucket: wait for its copy, then let the backend
//                     send it; meanwhile the GPU goes on with backward; then
//                     the reduced gradient goes up and the GPU updates, or the
//                     parameters that servers sent go up
//
// The backend's job points at host vectors and it cannot tell. On the CPU there
// are none, unless staging=always asks for copies, for tests.

#ifndef SYNC_COPIES_H
#define SYNC_COPIES_H

#include "sync/sync.h"

struct copies;

// Take job's vectors on the device, and put host vectors in their place. 0, or
// -1 after fail().
int copies_open(struct copies **out, struct sync_job *job, bool always);
void copies_close(struct copies **s);

// Bucket b is filled, as far as the compute queue has been asked: bring it
// down. The calling thread waits until it has come.
int copies_ready(struct copies *s, int b);
int copies_await(const struct copies *s, int b);

// The vectors on the device: those that buckets are brought down from, and
// those that workers update.
float *copies_grads(const struct copies *s);
float *copies_params(const struct copies *s);

// All parameters down, and wait; all up, before what the compute queue does
// next.
int copies_fetch_params(struct copies *s);
int copies_send_params(struct copies *s);

// The whole gradient up, before what the compute queue does next.
int copies_send_grads(struct copies *s);

#endif
