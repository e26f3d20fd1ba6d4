// ops.h - what a device must do to compute a model: one table for each device.
//
// The transformer itself is written once, for all devices: forward.c,
// backward.c, head.c. These functions and the kernels are all that differs.

#pragma once

#include "model/layers.h"
#include "model/model.h"
#include "model/product_job.h"

struct model_ops {
    const char *device; // the ops->name of its struct device
    // Products compute GELU and its gradient (EPILOGUE_GELU, EPILOGUE_DGELU),
    // and a layer keeps GELU's output. Else that is a pass of its own, and
    // backward computes the output again.
    bool fused;
    size_t line; // bytes to which tensors are aligned
    // Opens what the device needs and allocates m->tables and m->block. close()
    // is called even if open() has failed.
    int (*open)(struct model *m);
    // After the weights are known to the device, before the first step; may be
    // NULL. 0, or -1 after fail().
    int (*ready)(struct model *m);
    void (*close)(struct model *m);
    // Lays out the scratch whose size depends on the device.
    void (*layout)(struct model *m, struct arena *a, size_t rows);

    // From begin() to end() the calling thread computes for this model; begin()
    // returns what end() restores.
    int (*begin)(struct model *m);
    void (*end)(struct model *m, int before);
    // These make the tokens and targets of a pass, `rows` of them in host
    // memory, known to the device as m->x and m->y. group() prepares the tokens
    // for the embeddings' gradient; NULL if they need no preparation.
    void (*tokens)(struct model *m, const int32_t *x, size_t rows);
    void (*targets)(struct model *m, const int32_t *y, size_t rows);
    void (*group)(struct model *m, const int32_t *x, size_t rows);
    void (*product)(struct model *m, const struct product_job *j);
    // While backward's gradients travel, products leave processors to the
    // collectives. NULL if they share them anyway.
    void (*spare)(struct model *m, bool travelling);
    // ask_loss() begins to copy m->mean_loss to the host, read_loss() waits for
    // it. fetch() copies a tensor to the host and waits.
    void (*ask_loss)(struct model *m);
    float (*read_loss)(struct model *m);
    void (*fetch)(struct model *m, void *to, const void *from, size_t bytes);

    // model_memory() and model_peak(); peak may be NULL.
    void (*memory)(const struct model_job *job, struct model_bytes *out);
    int (*peak)(const struct model_job *job, struct model_peak *out);
};

extern const struct model_ops model_cpu, model_cuda;
