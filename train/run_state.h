// run_state.h - saves and resumes. A checkpoint is a folder that holds the
// whole state of training: a resumed run gives the same bits as one that was
// not interrupted.
//
//     OUT/checkpoint-200/model.safetensors      weights, Hugging Face's names
//                        config.json            for `transformers`
//                        optimizer.safetensors  the optimiser's slots
//                        state.json             step, position, loss scale;
//                                               hashes of the files (whole.h)
//                        symbols.txt            tokens as text, for sampling
//     OUT/latest                                the newest folder's name;
//                                               this one is resumed
//
// A checkpoint is written to a folder whose name begins with a dot, then
// fsynced and renamed. So a folder with the final name is always complete, even
// if the writer was killed. All functions that return int return 0, or -1 after
// fail().

#pragma once

#include "train/trainer.h"

// Bytes of the path of a checkpoint's folder, of a file in it, and of a hash.
enum {
    STATE_FOLDER = CONFIG_PATH + 64,
    STATE_PATH = CONFIG_PATH + 128,
    STATE_HASH = 17
};

// Writes OUT/checkpoint-STEP, then removes all checkpoints but the newest
// run.keep. All workers call it, and each writes its ranges of the optimiser's
// state. Every worker that has ranges must be able to write to OUT.
int state_save(struct trainer *t);

// In an elastic job the worker that saves may die in the last save. Returns
// when one of the workers has saved the last step. All workers call it after
// theirs.
int state_save_last(struct trainer *t);

// With save_async=1 a thread may still be writing a checkpoint. Returns -1
// after fail() if the thread has failed. With `wait` it first waits until the
// thread has ended.
int state_settle(struct trainer *t, bool wait);

// Waits for that thread and frees its copy of the state.
void state_close(struct trainer *t);

// The path of the checkpoint that resume= names, in folder[]. For a run's
// folder it is the newest undamaged checkpoint; for "auto" the newest of OUT,
// or "" if there is none. All workers call it and get the same path, and the
// checkpoint's step, data position and loss scale. The run that wrote it, if it
// still runs, keeps the checkpoint until *held is closed, unless that is -1. It
// is an error if nothing is left to do after a checkpoint of another folder.
int state_find(struct trainer *t, char folder[STATE_FOLDER], int *held);

// Begins from `folder`: worker 0 gets the weights, or each worker its shard.
// Call it before sync_bcast().
int state_load(struct trainer *t, const char *folder);

// A run has one line of history. So the checkpoints in OUT that are not in the
// past of the run that begins from `folder` ("": from its first weights) are
// moved aside, and what stopped saves left there is removed: unfinished
// folders and, if the run saves, checkpoints beyond keep=. One worker does it,
// unless it joins a running job. Returns 0, or -1 after fail().
int state_rewind(const struct trainer *t, const char *folder);

// Makes a run's first weights, from the file of init= or from the seed, on
// worker 0 or in shards. Call it before sync_bcast().
int state_first(struct trainer *t);

// Loads ranges of the optimiser's slots, on the workers that have slots. Call
// it after sync_bcast().
int state_load_slots(struct trainer *t, const char *folder);

// ---- what saving, resuming and verifying have in common

// Paths of a checkpoint's files of vectors, written in ranges by workers.
struct state_files {
    char model[STATE_PATH + 32], slots[STATE_PATH + 32];
};

// Sets *f for the checkpoint `folder`. Returns 0, or -1 after fail().
int state_files(struct state_files *f, const char *folder);

// Writes the hash of the data to `hash`, as text.
void state_data_hash(const struct trainer *t, char hash[STATE_HASH]);
