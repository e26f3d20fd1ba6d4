// rule.h - the update of whole vectors in the memory of a device.
//
//     norm = |grads| * scale;  skip if not finite;  clip;  optim_update()
//
// The result has the same bits on every device, and for every division of the
// vector among workers at multiples of RULE_BLOCK: sums of squares have one
// order (optim/segment.h), and no multiplication is fused with an addition. If
// the parameters have a 16-bit copy, the pass that updates them also writes the
// copy. With AdamW this pass moves 30 bytes per element; two passes would move
// 28 and 6.

#pragma once

#include "base/half.h"
#include "optim/optim.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct device;

enum { RULE_BLOCK = 4096, RULE_LANES = 16 };

// For a vector that is a part of a longer one. The norm is that of the whole.
struct norm_parts {
    struct optim_range *elsewhere; // elements that another part counts, in
    int count;                     // ascending, disjoint ranges
    // Adds *squares of all parts; *squares becomes the sum, with the same bits
    // on all of them. 0, or -1 after fail().
    int (*sum)(void *ctx, double *squares);
    void *ctx;
};

struct rule_in {
    int step; // counts updates from 1
    float lr;
    float scale;                    // factor that undoes the loss scale
    float clip;                     // largest norm allowed; 0: no limit
    bool frozen;                    // optim_update_frozen(); on the CPU only
    struct half_copy *copy;         // of params, on the device; or NULL
    const struct norm_parts *parts; // NULL: the vector is whole
    // Only if rule_runs_ahead(): called when the update is queued, and before
    // the host waits for the norm. -1 ends the step. May be NULL.
    int (*settle)(void *ctx);
    void *ctx; // of settle
};

struct rule {
    const struct rule_ops *ops;
    struct device *dev;
    const struct optim_config *config;
    size_t n;
    float *slots[OPTIM_MAX_SLOTS]; // n elements each, on the device; or
    struct offload *file;          // the slots are in this file
    void *state;
};

// The update of one kind of device. step() queues the norm and the update, and
// waits only for the norm, so that the device is never idle.
struct rule_ops {
    const char *device; // the device's ops->name
    bool ahead;         // its work waits for that of the compute queue
    int (*open)(struct rule *r);
    int (*step)(struct rule *r, float *params, const float *grads,
                const struct rule_in *in, float *norm);
    void (*close)(struct rule *r); // must accept an open() that failed half-way
};

extern const struct rule_ops rule_cpu, rule_cuda;

// Makes the optimiser's state for n elements, zeroed: on the device, or with
// `folder` in a file there (optim/offload.h; with rule_cpu only). Borrows the
// config. 0, or -1 after fail(); rule_close() must be called in both cases.
int rule_open(struct rule *r, struct device *d, const struct optim_config *c,
              size_t n, const char *folder);
void rule_close(struct rule *r);

// Whether an update waits for the earlier work of the device's compute queue,
// so that the gradient need not be complete when rule_step() is called.
bool rule_runs_ahead(const struct rule *r);

// Updates params from the gradient in->scale * grads, n elements each, both on
// the device. *norm becomes the norm of the unscaled gradient. If it is not
// finite, nothing is updated; else in->copy becomes fresh. 0, or -1 after
// fail().
int rule_step(struct rule *r, float *params, const float *grads,
              const struct rule_in *in, float *norm);

#ifdef __cplusplus
}
#endif
