// fault.h - what goes wrong on purpose: faults (inject=), to test failures, and
// common mistakes in programs of this kind (mistake=), so that their effects
// can be seen (experiments/mistakes.md).

#pragma once

#include "sync/sync.h"

// Returns 0, or -1 after fail() if a mistake is asked for that cannot be made
// with these settings.
int fault_check(const struct sync *s);

// inject=nan, inf: makes the first gradient of bucket 0 bad before the bucket
// is sent.
void fault_gradient(struct sync *s);

// inject=kill, fail, delay: before the strategy's step, kills this process,
// fails, or sleeps. Returns 0, or -1 after fail().
int fault_step(const struct sync *s);

// mistake=local_clip: clips this worker's own gradient before the sum, to the
// norm that the mean gradient may have. Otherwise does nothing.
void fault_clip(struct sync *s, const struct sync_in *in);
