// verify.h - `trainer verify FOLDER [key=value] ..`, for `lockstep verify`: one
// line of JSON says what can be proved of a checkpoint.
//
//     "wrong"       what is wrong with it, "" if nothing is
//     "unknown"     why its loss was not computed, "" if it was
//     "val_loss"    the validation loss of its weights
//     "data_hash_xxh3"    of the data on which that was computed
//
// The words follow the settings of the checkpoint's run. eval=0: no loss.

#pragma once

#include "train/trainer.h"

// Returns 0 if the line was printed, whatever it says, or -1 after fail().
int verify_checkpoint(struct trainer *t, const char *folder, int nwords,
                      char *const *words);
