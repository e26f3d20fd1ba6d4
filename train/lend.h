// lend.h - gives the model the blocks that the backend keeps in shards.

#pragma once

#include "train/trainer.h"

// The value of model_job.lender. Its context is *t. The backend must be open
// before the model takes the first block.
struct model_lender lend_blocks(struct trainer *t);

// *hash: a hash of all weights, block by block. All workers call it. Returns 0,
// or -1 after fail().
int lend_hash(struct trainer *t, uint64_t *hash);
