// stage.h - lets a backend that knows host memory alone serve a GPU.
//
//     sync_ready(b)   begin to copy bucket b down                (the door)
//     sync_step()     for each bucket: wait for its copy, then let the backend
//                     send it; meanwhile the GPU goes on with backward; then
//                     the reduced gradient goes up and the GPU updates, or the
//                     parameters that servers sent go up
//
// The backend's job points at host vectors and it cannot tell. On the CPU there
// is no stage, unless staging=always asks for copies, for tests.

#ifndef SYNC_STAGE_H
#define SYNC_STAGE_H

#include "sync/sync.h"

struct stage;

// Take job's vectors on the device, and put host vectors in their place. 0, or
// -1 after fail().
int stage_open(struct stage **out, struct sync_job *job, bool always);
void stage_close(struct stage **s);

// Bucket b is filled, as far as the compute queue has been asked: bring it
// down. The calling thread waits until it has come.
int stage_ready(struct stage *s, int b);
int stage_await(const struct stage *s, int b);

// The vectors on the device: those that buckets are brought down from, and
// those that workers update.
float *stage_grads(const struct stage *s);
float *stage_params(const struct stage *s);

// All parameters down, and wait; all up, before what the compute queue does
// next.
int stage_fetch_params(struct stage *s);
int stage_send_params(struct stage *s);

// The whole gradient up, before what the compute queue does next.
int stage_send_grads(struct stage *s);

#endif
