// optim.h - the update rules: plain data plus functions, for worker and server.
//
//     AdamW  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
//            p = p - lr (m^ / (sqrt(v^) + eps) + wd p)
//            (Loshchilov and Hutter, ICLR 2019; m^, v^ bias-corrected)
//     SGD    u = mu u + g;  p = p - lr (u + wd p)
//            (decay decoupled, as in AdamW; momentum as in PyTorch)
//
// An optimiser's state is `slots` vectors laid out like the parameters (AdamW:
// m, v; SGD: u if momentum > 0), owned by whoever updates. Everything works on
// a range [off, off+n) of the flat parameter vector, so that a server can own
// a shard: pointers point at the range's first element, `off` says where it is.

#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum optim_kind { OPTIM_ADAMW, OPTIM_SGD };

// Room for the matrices of 1024 layers.
enum { OPTIM_MAX_DECAY = 4100, OPTIM_MAX_SLOTS = 2 };

struct optim_range {
    uint64_t off, n; // elements of the flat parameter vector
};

// Everything that a server must be told; no pointers, fixed width.
struct optim_config {
    uint32_t kind; // enum optim_kind
    float beta1, beta2, eps, weight_decay, momentum;
    uint32_t ndecay; // ranges that decay, ascending, disjoint
    struct optim_range decay[OPTIM_MAX_DECAY];
};

// How many state vectors the rule keeps: 0, 1 or 2.
int optim_slots(const struct optim_config *c);

// The name of slot i, as checkpoints call it: "exp_avg", "exp_avg_sq",
// "momentum_buffer".
const char *optim_slot_name(const struct optim_config *c, int i);

// One update of params[0..n) and slots[i][0..n), the elements [off, off+n) of
// the whole vector, with gradient scale * grads. `step` counts updates from 1.
// Vector code, this thread only: callers split ranges over threads, and the
// result does not depend on how.
void optim_update(const struct optim_config *c, float *params,
                  float *const *slots, const float *grads, size_t off, size_t n,
                  int step, float lr, float scale);

// Sum of squares of g[0..n), in double, in a fixed order. Infinite or NaN if
// and only if an element is: the test for overflow.
double optim_sum_squares(const float *g, size_t n);

// What a step does with a complete gradient sum, the same on every backend:
// unscale, then clip. `sum_squares` is that of the raw sum. Returns the factor
// for optim_update(), stores the norm of the unscaled gradient; when the sum is
// not finite the norm is infinite or NaN, and the step must be skipped.
float optim_clip_scale(double sum_squares, float grad_scale, float clip,
                       float *norm);

#ifdef __cplusplus
}
#endif

#endif
