// check.h - checks after a step: gradients that overflowed, replicas that
// differ.

#ifndef TRAIN_CHECK_H
#define TRAIN_CHECK_H

#include "train/trainer.h"

// After a step that was skipped because its gradient was not finite. 0 if a
// smaller loss scale may help; *skips counts such steps in a row. Else -1 after
// fail() that names a tensor.
int check_skip(struct trainer *t, int *skips);

// verify=: 0 if all replicas are bit-identical, else -1 after fail() on every
// worker. A call of all workers.
int check_replicas(struct trainer *t);

#endif
