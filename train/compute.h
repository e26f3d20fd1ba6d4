// compute.h - what a worker computes between two updates.

#pragma once

struct trainer;

// Forward and backward over all micro-batches; buckets are sent during the last
// one. Sets t->loss, with several stages only on the last. Returns 0, or -1
// after fail().
int compute_step(struct trainer *t);

// Sets val_loss of the trainer `ctx`: the mean loss over this replica's share
// of the validation batches, NAN if it has none. Returns 0, or -1 after fail().
int compute_val_loss(void *ctx);
