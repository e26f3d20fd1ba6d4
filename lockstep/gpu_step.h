// gpu_step.h - estimates a training step on a GPU, part by part.

#ifndef LOCKSTEP_GPU_STEP_H
#define LOCKSTEP_GPU_STEP_H

#include "model/model.h"

// Prints an estimate for each part of a step of `batch` sequences in bf16 on
// the GPU of that name ("h100"), from its FLOP, bytes and instructions. *ms is
// the mean of the best and the worst sum, in ms. 0, or -1 after fail() if the
// GPU is unknown.
int gpu_step(const char *name, const struct model_config *c, int batch,
             double *ms);

#endif
