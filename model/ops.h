// ops.h - what a device must do to compute a model: one table for each device.

#ifndef MODEL_OPS_H
#define MODEL_OPS_H

#include "model/model.h"

struct model {
    const struct model_ops *ops;
    struct model_job job;
    struct half_copy copy; // open() fills in copy.at
    void *state;
};

// The buffers between stages: model_input(), model_output(), model_edge().
enum model_between { BETWEEN_INPUT, BETWEEN_OUTPUT, BETWEEN_EDGE };

// model.c checks the arguments before it calls one of these: the job, every
// token, batch <= B, n <= T. Losses and logits are written to host memory;
// model.c checks that they are finite.
struct model_ops {
    const char *device; // the ops->name of its struct device
    bool borrows;       // takes blocks from a lender
    bool parts;         // computes stages and slices; a stage needs `between`
    int (*open)(struct model *m);
    void (*params_changed)(struct model *m);
    int (*forward)(struct model *m, const struct model_step *s,
                   const struct model_pass *p);
    int (*backward)(struct model *m, const struct model_step *s,
                    const struct model_pass *p, float *loss);
    int (*eval)(struct model *m, const struct model_pass *p, const int32_t *x,
                const int32_t *y, int batch, float *loss);
    void *(*between)(struct model *m, enum model_between what, int i);
    int (*logits)(struct model *m, const int32_t *x, int n, float *logits);
    void (*memory)(const struct model_job *job, struct model_bytes *out);
    int (*peak)(const struct model_job *job, struct model_peak *out); // or NULL
    void (*close)(struct model *m); // also after open() has failed
};

extern const struct model_ops model_cpu, model_cuda;

#endif
