// ops.h - what a device must do to be a model: one table a device.

#ifndef MODEL_OPS_H
#define MODEL_OPS_H

#include "model/model.h"

struct model {
    const struct model_ops *ops;
    struct model_job job;
    struct half_copy copy; // at: open's to fill in
    void *state;
};

// What a stage receives, or sends: number i of each.
enum model_between { BETWEEN_INPUT, BETWEEN_OUTPUT, BETWEEN_EDGE };

// The door (model.c) has checked what comes in: the job, every token, batch <=
// B, n <= T. Losses and logits go to the host; whether they are finite is the
// door's business again.
struct model_ops {
    const char *device; // whose ops->name
    bool borrows;       // takes blocks from a lender
    bool parts;         // of a model; a stage has what is between stages
    int (*open)(struct model *m);
    void (*params_changed)(struct model *m);
    int (*forward)(struct model *m, const struct model_step *s,
                   const struct model_turn *t);
    int (*backward)(struct model *m, const struct model_step *s,
                    const struct model_turn *t, float *loss);
    int (*eval)(struct model *m, const struct model_turn *t, const int32_t *x,
                const int32_t *y, int batch, float *loss);
    void *(*between)(struct model *m, enum model_between what, int i);
    int (*logits)(struct model *m, const int32_t *x, int n, float *logits);
    void (*memory)(const struct model_job *job, struct model_bytes *out);
    int (*peak)(const struct model_job *job, struct model_peak *out); // or NULL
    void (*close)(struct model *m); // must accept what open() left half-way
};

extern const struct model_ops model_cpu, model_cuda;

#endif
