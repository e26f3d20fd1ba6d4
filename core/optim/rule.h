// rule.h - the update of whole vectors where they live, by the device.
//
//     norm = |grads| * scale;  not finite: skip;  clip;  optim_update()
//
// The bits are the same on every device, and for every division of the vector
// among workers at multiples of RULE_BLOCK: sums of squares have one order
// (optim/segment.h), and no multiplication is fused with an addition. If the
// params have a 16-bit copy, the pass that updates them writes the copy as
// well. It moves 30 bytes an element; two passes would move 28 and 6.

#ifndef OPTIM_RULE_H
#define OPTIM_RULE_H

#include "base/half.h"
#include "optim/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

struct device;

enum { RULE_BLOCK = 4096, RULE_LANES = 16 };

// For a vector that is a part of a longer one. The norm is of the whole.
struct norm_parts {
    struct optim_range *elsewhere; // which another part counts: ascending,
    int count;                     // disjoint
    // *squares := that of all parts, the same bits everywhere. 0, or -1 after
    // fail().
    int (*sum)(void *ctx, double *squares);
    void *ctx;
};

struct rule_in {
    int step; // counts updates from 1
    float lr;
    float scale;                    // unscales the gradient
    float clip;                     // largest norm allowed; 0: no limit
    struct half_copy *copy;         // of params, on the device; or NULL
    const struct norm_parts *parts; // NULL: the vector is whole. CPU only
    // Where rule_runs_ahead(): called when the update has been asked for and
    // before the host waits for it; -1 ends the step. NULL: nothing is.
    int (*settle)(void *ctx);
    void *ctx; // of settle
};

struct rule {
    const struct rule_ops *ops;
    struct device *dev;
    const struct optim_config *config;
    size_t n;
    float *slots[OPTIM_MAX_SLOTS]; // n elements each, on the device
    void *state;
};

// How a device does it. step() queues the norm and the update, and waits only
// for the norm, so that the device is never idle.
struct rule_ops {
    const char *device; // whose ops->name
    bool ahead;         // what it asks for follows the compute queue
    int (*open)(struct rule *r);
    int (*step)(struct rule *r, float *params, const float *grads,
                const struct rule_in *in, float *norm);
    void (*close)(struct rule *r); // must accept what open() left half-way
};

extern const struct rule_ops rule_cpu, rule_cuda;

// The optimiser's state for n elements, zeroed, on the device. Borrows config.
// 0, or -1 after fail().
int rule_open(struct rule *r, struct device *d, const struct optim_config *c,
              size_t n);
void rule_close(struct rule *r);

// Whether an update is queued behind what the device's compute queue was asked
// for, so that the gradient need not be there when rule_step() is called.
bool rule_runs_ahead(const struct rule *r);

// One update of params from the gradient in->scale * grads, both on the device.
// *norm is that of the unscaled gradient; where it is not finite, nothing has
// been or will be updated; else in->copy is fresh. 0, or -1 after fail().
int rule_step(struct rule *r, float *params, const float *grads,
              const struct rule_in *in, float *norm);

#ifdef __cplusplus
}
#endif

#endif
