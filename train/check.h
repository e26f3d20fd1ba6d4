// check.h - checks after a step: a gradient that overflowed, replicas that
// differ.

#pragma once

#include "train/trainer.h"

// Call it after a step that was skipped because its gradient was not finite.
// Counts such steps in a row. Returns 0 if a smaller loss scale may help, else
// -1 after fail() that names a tensor.
int check_skip(struct trainer *t);

// The check of verify=. All workers call it. Returns 0 if all replicas are
// bit-identical, and a 16-bit copy of parameters is what they round to. Else -1
// after fail(): on every worker if replicas differ.
int check_replicas(struct trainer *t);
