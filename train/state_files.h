// state_files.h - what saving and resuming have in common.

#pragma once

#include "train/trainer.h"

enum { STATE_PATH = CONFIG_PATH + 128, STATE_HASH = 17 };

// Paths of a checkpoint's files of vectors, written in ranges by workers.
struct state_files {
    char model[STATE_PATH + 32], slots[STATE_PATH + 32];
};

// Sets *f for the checkpoint `folder`. Returns 0, or -1 after fail().
int state_files(struct state_files *f, const char *folder);

// Writes the hash of the data to `hash`, as text.
void state_data_hash(const struct trainer *t, char hash[STATE_HASH]);
