// optim.h - the update rules, as plain data and functions, for workers and
// servers.
//
//     AdamW  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
//            p = p - lr (m^ / (sqrt(v^) + eps) + wd p)
//            (Loshchilov and Hutter, ICLR 2019; m^, v^ bias-corrected)
//            frozen (1-bit Adam; Tang et al., ICML 2021): m is given, v stays;
//            p = p - lr (m / (sqrt(v) + eps) + wd p)
//     SGD    u = mu u + g;  p = p - lr (u + wd p)
//            (decay decoupled, as in AdamW; momentum as in PyTorch)
//     LARS, LAMB: optim/rule_cpu.c
//
// The state of an optimiser consists of vectors with the layout of the
// parameters, called slots (AdamW: m, v; SGD: u if momentum > 0). The process
// that updates owns them. optim_update() works on a range [off, off+n) of the
// flat parameter vector, so that a server can own a shard: pointers point to
// the first element of the range, and `off` is its place in the vector.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum optim_kind { OPTIM_ADAMW, OPTIM_SGD, OPTIM_LARS, OPTIM_LAMB };

// OPTIM_MAX_DECAY is enough for the matrices of 1024 layers.
enum { OPTIM_MAX_DECAY = 4100, OPTIM_MAX_SLOTS = 2 };

struct optim_range {
    uint64_t off, n; // elements of the flat parameter vector
    uint64_t rows;   // of the matrix; 0: it is none, or its shape is not known
};

// All that a server must know. It has no pointers, and members of fixed width,
// so that it can be sent.
struct optim_config {
    uint32_t kind; // enum optim_kind
    float beta1, beta2, eps, weight_decay, momentum;
    uint32_t ndecay; // ranges that decay, ascending, disjoint
    struct optim_range decay[OPTIM_MAX_DECAY];
};

// The slots of the elements from `at` on, of a rule that may have fewer than
// OPTIM_MAX_SLOTS: the others are NULL.
static inline void optim_slots_at(float *const *slots, size_t at, float **own)
{
    for (int i = 0; i < OPTIM_MAX_SLOTS; i++)
        own[i] = slots[i] ? slots[i] + at : NULL;
}

// The constants of an update of elements that have one weight decay.
struct optim_rates {
    float lr, decay, scale;
    float beta1, beta2, correct1, correct2, eps; // adamw; correct: of the bias
    float momentum;                              // sgd
    bool frozen;                                 // adamw
};

// Those of a step, with the gradient scale * grads, where elements decay.
struct optim_rates optim_rates_of(const struct optim_config *c, int step,
                                  float lr, float scale);

// The number of slots of a rule: 0, 1 or 2.
int optim_slots(const struct optim_config *c);
int optim_slots_of(uint32_t kind, float momentum);

// The name of slot i in checkpoints: "exp_avg", "exp_avg_sq",
// "momentum_buffer".
const char *optim_slot_name(const struct optim_config *c, int i);

// Updates params[0..n) and slots[i][0..n), the elements [off, off+n) of the
// whole vector, with the gradient scale * grads and the learning rate lr.
// `step` counts updates from 1. It uses vector code in the calling thread only:
// callers split the range among threads, and the result does not depend on the
// split. LAMB is updated as AdamW, and LARS as SGD, which is right for elements
// that do not decay.
void optim_update(const struct optim_config *c, float *params,
                  float *const *slots, const float *grads, size_t off, size_t n,
                  int step, float lr, float scale);

// The same with AdamW whose second moment is frozen: the next first moment is
// scale * moments, but 0 where sqrt(v) <= eps. There the gradients have been 0,
// or nothing but rounding, while a moment that has been compressed to its sign
// and a common size is neither.
void optim_update_frozen(const struct optim_config *c, float *params,
                         float *const *slots, const float *moments, size_t off,
                         size_t n, float lr, float scale);

// The sum of squares of g[0..n), in double, in a fixed order. It is infinite or
// NaN if and only if an element is: the test for overflow.
double optim_sum_squares(const float *g, size_t n);

// The factor by which optim_update() must multiply the gradient: grad_scale,
// which undoes the loss scale, times the factor that clips the norm to `clip`
// (0: no limit). `sum_squares` is that of the gradient sum before scaling.
// *norm becomes the norm after grad_scale. If the sum is not finite, *norm is
// infinite or NaN, and the step must be skipped.
float optim_clip_scale(double sum_squares, float grad_scale, float clip,
                       float *norm);

#ifdef __cplusplus
}
#endif
