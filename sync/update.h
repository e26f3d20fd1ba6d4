// update.h - the update as a worker does it that holds the whole gradient.
//
// The order is the same on every backend: reduce, test for overflow, unscale,
// clip, update. Backends whose workers update (local, allreduce, ring, servers
// with update=worker) reduce in their own way and leave the rest to this, which
// leaves it to the device.

#ifndef SYNC_UPDATE_H
#define SYNC_UPDATE_H

#include "optim/rule.h"
#include "sync/sync.h"

#ifdef __cplusplus
extern "C" {
#endif

struct update {
    struct rule rule;
};

// Allocate the optimiser's state, zeroed. 0, or -1 after fail().
int update_open(struct update *u, const struct sync_job *job);
void update_close(struct update *u, const struct sync_job *job);

// job->grads holds the sum over workers divided by `divided` (1, or the world
// where a narrow wire made the backend divide first). Fills out's grad_norm,
// skipped and the times of the update, and updates job->params and job->copy
// unless skipped.
// The bits depend neither on the number of threads nor on the device. 0, or -1
// after fail().
int update_step(struct update *u, const struct sync_job *job,
                const struct sync_in *in, float divided, struct sync_out *out);

// Copy the state out to host vectors of n elements. 0, or -1 after fail().
int update_get(const struct update *u, const struct sync_job *job,
               float *const *slots);

// Make the state on all workers what `slots` are on worker 0 (NULL elsewhere).
// `spread` makes a host vector of n elements, slot i, worker 0's everywhere.
typedef int update_spread(void *ctx, int i, float *vector);
int update_set(struct update *u, const struct sync_job *job,
               const float *const *slots, update_spread *spread, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
