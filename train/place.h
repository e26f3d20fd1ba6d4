// place.h - where this worker's vectors live: the device, its memory, and the
// host's view of it for files and messages.

#ifndef TRAIN_PLACE_H
#define TRAIN_PLACE_H

#include "train/trainer.h"

// Open the device, of several on this host the one for this worker.
int place_open(struct trainer *t);

// Allocate params, grads and host. place_close() takes a half-open trainer.
int place_vectors(struct trainer *t);
void place_close(struct trainer *t);

// A vector of the device as the host reads it: itself where that is the CPU,
// else a copy in t->host, good until the next call. NULL after fail().
const float *place_read(const struct trainer *t, const float *vector);

// What was put into t->host becomes the parameters. 0, or -1 after fail().
int place_write_params(struct trainer *t);

#endif
