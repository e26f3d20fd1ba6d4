// residuals.h - the state of strategies with squeeze=: what one step leaves to
// the next, in checkpoints.
//
// Slots: those of the optimiser; then the strategy's own, if it has one; then
// the residuals of worker 0, 1, .., each with its velocity behind it if there
// is one. In a world of w' workers after one of w, worker r takes the sum of
// the residuals of r, r + w', .. and multiplies it by w'/w, because sums over
// workers are divided by the world.
//
// With squeeze=demo a residual is a worker's momentum: it decays in each step.
//
// With momentum_correction=1 (Deep Gradient Compression, Lin et al., ICLR 2018)
// each worker has the momentum, and the optimiser has none:
//
//     velocity = decay velocity + gradients;  x = velocity + residual
//
// Where an element is sent, both become 0.
//
// With freeze= (1-bit Adam; Tang et al., ICML 2021, arXiv 2102.02888) the first
// steps are those of AdamW. Then its second moment stays as it is, and workers
// compress what its first would become by their own gradients alone:
//
//     x = (1 - beta1) gradients + beta1 m + residual;   m = mean of messages
//
// m, the first moment, is that of all workers. Like a sum of gradients, x still
// has to be multiplied by the step's grad_scale.

#pragma once

#include "sync/sync.h"

struct residuals {
    // Before residuals_open(), the strategy sets the name of its own slot, NULL
    // if it has none, and how many elements of it this worker keeps. They are
    // kept twice, as those below.
    const char *own_name;
    size_t nown;
    float *own_kept, *own_fresh; // NULL: it has no own slot; empty: servers
                                 // keep it
    // What this worker's messages lack, job.n elements: of the last update, and
    // of this step. NULL: feedback=0.
    float *kept, *fresh;
    float fade; // of `kept`, in each step; 1: it does not decay
    // With momentum_correction=1 the velocity of each element, likewise; else
    // NULL. It decays by `decay` in each step.
    float *speed, *fresh_speed;
    float decay;
    // In a step that is compressed with freeze=: the first moment, else NULL.
    // x has so much of it, and of the gradients.
    const float *moment;
    float of_moment, of_grads;
};

// The name of the own slot if it is what the compressed sums lack.
#define RESIDUAL_OF_SUMS "residual_of_sums"

// Allocates what this worker keeps. 0, or -1 after fail(); call
// residuals_close() in both cases.
int residuals_open(struct residuals *r, const struct sync *s);
void residuals_close(struct residuals *r);

// A step begins. Returns whether it is compressed.
bool residuals_begin(struct residuals *r, struct sync *s);

// The step is an update: what it left is kept.
void residuals_keep(struct residuals *r);

// x = gradients, or velocity, or moment, + fade * residual of elements [off,
// off + n), in `fresh`; without feedback in the gradients, of which `grads` has
// those of these elements. The velocity is made.
float *residuals_add(const struct residuals *r, float *grads, size_t off,
                     size_t n);

// The rest uses s->residuals.

// Functions of struct sync_state_ops: the number of slots, and the name of one.
int residuals_slots(const struct sync *s);
void residuals_slot_name(const struct sync *s, int slot,
                         char name[SYNC_SLOT_NAME]);
int residuals_own_slot(const struct sync *s);

// Visit the optimiser's state in s->rule, unless the strategy itself updates,
// and this worker's residual. The strategy visits its own slot, which has to be
// multiplied by *by: w'/w. Return 0, or -1 after fail().
int residuals_save(struct sync *s, sync_visit *visit, void *ctx);
int residuals_load(struct sync *s, sync_visit *visit, void *ctx, float *by);
