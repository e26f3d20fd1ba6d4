// lend.h - blocks that the backend keeps in shards, on their way to the model.

#ifndef TRAIN_LEND_H
#define TRAIN_LEND_H

#include "train/trainer.h"

// For model_job.lender; its context is *t, whose backend is open when the model
// asks.
struct model_lender lend_blocks(struct trainer *t);

// A hash of all weights, as the model is lent them. A call of all workers. 0,
// or -1 after fail().
int lend_hash(struct trainer *t, uint64_t *hash);

#endif
