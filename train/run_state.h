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
// It is written under a name that begins with a dot, fsynced and renamed, so a
// folder of that name is always whole, whenever the writer was killed.

#ifndef TRAIN_RUN_STATE_H
#define TRAIN_RUN_STATE_H

#include "train/trainer.h"

// Write OUT/checkpoint-STEP, in which every worker writes its ranges of the
// optimiser's state, then remove all but the newest run.keep. Every worker
// calls it; those that have such a part must see OUT.
int state_save(struct trainer *t);

// With save_async=1 a thread may still be writing a checkpoint: -1 after fail()
// where it could not; with `wait` it has ended.
int state_settle(struct trainer *t, bool wait);

void state_close(struct trainer *t);

// The checkpoint that resume= names: of a run's folder its newest that is
// whole, for "auto" that in OUT, "" if there is none. A call of all workers,
// which get the same. 0, or -1 after fail().
int state_find(const struct trainer *t, char *folder, size_t size);

// Begin from `folder`: step, data position and loss scale on every worker,
// weights on worker 0, or in shards. Called before sync_bcast().
int state_load(struct trainer *t, const char *folder);

// A run's first weights, from the file of init= or the seed: on worker 0, or in
// shards. Called before sync_bcast().
int state_first(struct trainer *t);

// The optimiser's slots, by ranges, on those that have them. Called after
// sync_bcast().
int state_load_slots(struct trainer *t, const char *folder);

#endif
