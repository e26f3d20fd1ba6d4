// whole.h - whether a checkpoint is what was written: hashes in its state.json.
//
//     "files": {"model.safetensors": "0123456789abcdef", ..},
//     "hash_xxh3": "..", of state.json itself without this member
//
// state.json is written last, so that it ties the others to one step. One
// without either member is of a time before them, and is believed.

#ifndef TRAIN_WHOLE_H
#define TRAIN_WHOLE_H

#include <cjson/cJSON.h>

// Add the hashes of the files that lie in `folder`, then that of *state. 0, or
// -1 after fail().
int whole_seal(cJSON *state, const char *folder);

// 0, or -1 after fail() that names the file of the checkpoint which is not what
// was written.
int whole_check(const char *folder);

#endif
