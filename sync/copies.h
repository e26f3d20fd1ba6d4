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

#pragma once

#include "sync/sync.h"

struct copies;

// Replace job's vectors on the device by host copies, which *out owns. The
// gradients may be NULL. always: copy even if they are in host memory already.
// Returns 0, or -1 after fail().
int copies_open(struct copies **out, struct sync_job *job, bool always);
void copies_close(struct copies **s);

// copies_ready: the work that fills bucket b is queued on the compute queue;
// queue its copy to the host behind that. copies_await: wait until that copy is
// complete. Both return 0, or -1 after fail().
int copies_ready(struct copies *s, int b);
int copies_await(const struct copies *s, int b);

// The vectors on the device: the gradients that buckets are copied from, and
// the parameters that workers update.
float *copies_grads(const struct copies *s);
float *copies_params(const struct copies *s);

// copies_fetch_params: copy all parameters to the host, and wait for the copy.
// copies_send_params: copy all to the device, before the compute queue's next
// work. Both return 0, or -1 after fail().
int copies_fetch_params(struct copies *s);
int copies_send_params(struct copies *s);

// Copy the whole gradient to the device, before the compute queue's next work.
// Returns 0, or -1 after fail().
int copies_send_grads(struct copies *s);
