// whole.h - detects damaged checkpoints: state.json has the hashes of the
// checkpoint's files.
//
//     "files": {"model.safetensors": "0123456789abcdef", ..},
//     "hash_xxh3": "..", of state.json itself without this member
//
// state.json is written last, so that all files belong to one step. A
// state.json with neither member is of an older version, and is accepted.

#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

// Add the hashes of the files in `folder` to *state, then that of *state.
// Returns 0, or -1 after fail().
int whole_seal(cJSON *state, const char *folder);

// Returns 0, or -1 after fail() that names the first file of the checkpoint
// `folder` that is damaged. optimizer: also of the optimiser's state, which
// only a resumed run needs.
int whole_check(const char *folder, bool optimizer);

// The same without the optimiser's state, for the checkpoint that the file
// `path` is in, if it is in one.
int whole_check_file(const char *path);
