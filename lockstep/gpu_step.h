// gpu_step.h - a training step on a GPU by arithmetic, part by part.

#ifndef LOCKSTEP_GPU_STEP_H
#define LOCKSTEP_GPU_STEP_H

#include "model/model.h"

// Print what each part of a step of `batch` sequences in bf16 takes on the GPU
// of that name ("h100"), from its bytes, arithmetic and instructions. *ms is
// the middle of the sum's range, in ms. 0, or -1 after fail(): an unknown GPU.
int gpu_step(const char *name, const struct model_config *c, int batch,
             double *ms);

#endif
