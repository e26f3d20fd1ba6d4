// check.h - what is looked at after a step, beside its time and its loss.

#ifndef TRAIN_CHECK_H
#define TRAIN_CHECK_H

#include "train/trainer.h"

// After a step whose gradient was not finite, so that nobody updated. 0 where
// the loss is scaled and its scale may still help, which *skips counts in a
// row; else -1 after fail() that names a tensor.
int check_skip(struct trainer *t, int *skips);

// verify=: 0 where all workers' parameters are the same to the bit, else -1
// after fail() on every worker. A call of all of them.
int check_replicas(struct trainer *t);

#endif
