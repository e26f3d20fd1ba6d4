// place.h - opens this worker's device and allocates its vectors, with a host
// copy for files and messages.

#pragma once

#include "train/trainer.h"

// Open the device. The workers of a host take its GPUs in turn. Returns 0, or
// -1 after fail().
int place_open(struct trainer *t);

// Allocate t->params, t->grads and t->host. Returns 0, or -1 after fail().
// place_close() frees them; it accepts a trainer that is not fully open.
int place_vectors(struct trainer *t);
void place_close(struct trainer *t);

// Returns the vector (all n parameters) in host memory: itself if the device is
// the CPU, else a copy in t->host that is valid until the next call.
const float *place_read(const struct trainer *t, const float *vector);

// Copy t->host to the parameters.
void place_write_params(struct trainer *t);
