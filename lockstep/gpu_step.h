// gpu_step.h - estimates a training step on a GPU, part by part.

#ifndef LOCKSTEP_GPU_STEP_H
#define LOCKSTEP_GPU_STEP_H

#include "model/model.h"
#include "sync/law.h"

struct run;

struct gpu_link {
    struct link link;
    const char *source; // where the figures are from
};

// Returns the link that is assumed between GPUs of one host, or NULL after
// fail() if the GPU is unknown.
const struct gpu_link *gpu_step_inner(const char *name);

// The estimates are for bf16. Sets the run's precision to it. -1 after fail()
// if the run asks for another one, or if the GPU is unknown.
int gpu_step_precision(const char *name, struct run *r);

// Prints an estimate for each part of a step of `batch` sequences in bf16 on
// the GPU of that name ("h100"), from its FLOP, bytes and instructions. *ms is
// the mean of the best and the worst sum, in ms. 0, or -1 after fail() if the
// GPU is unknown.
int gpu_step(const char *name, const struct model_config *c, int batch,
             double *ms);

#endif
