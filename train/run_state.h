// run_state.h - a checkpoint is a folder: everything to go on from, to the bit.
//
//     OUT/checkpoint-200/model.safetensors      weights, Hugging Face's names
//                        config.json            for `transformers`
//                        optimizer.safetensors  the optimiser's slots
//                        state.json             step, position, loss scale;
//                                               hashes of the files (whole.h)
//                        symbols.txt            tokens as text, for sampling
//     OUT/latest                                the newest folder's name
//
// It is written under a name that begins with a dot, then fsynced and renamed.
// So a folder with the final name is always whole, even if the writer was
// killed.

#ifndef TRAIN_RUN_STATE_H
#define TRAIN_RUN_STATE_H

#include "train/trainer.h"

// Writes OUT/checkpoint-STEP, then removes all checkpoints but the newest
// run.keep. Every worker calls it, and writes its ranges of the optimiser's
// state. Workers with such ranges must see OUT.
int state_save(struct trainer *t);

// With save_async=1 a thread may still be writing a checkpoint. -1 after fail()
// if it could not write. With `wait` the call returns after the thread has
// ended.
int state_settle(struct trainer *t, bool wait);

void state_close(struct trainer *t);

// The checkpoint that resume= names. For a run's folder it is the newest that
// is whole; for "auto" the newest of OUT, or "" if there is none. All workers
// call it, and get the same. 0, or -1 after fail().
int state_find(const struct trainer *t, char *folder, size_t size);

// Begins from `folder`. Every worker gets step, data position and loss scale;
// worker 0 gets the weights, or each worker its shard. Call it before
// sync_bcast().
int state_load(struct trainer *t, const char *folder);

// Makes a run's first weights, from the file of init= or from the seed, on
// worker 0 or in shards. Call it before sync_bcast().
int state_first(struct trainer *t);

// Loads ranges of the optimiser's slots, on the workers that have slots. Call
// it after sync_bcast().
int state_load_slots(struct trainer *t, const char *folder);

#endif
