// fault.h - faults on purpose (inject=), for tests of failures.

#pragma once

#include "sync/sync.h"

// nan, inf: makes the first gradient of bucket 0 bad before the bucket is sent.
// Returns 0, or -1 after fail().
int fault_gradient(struct sync *s);

// kill, fail, delay: before the strategy's step, kills this process, fails, or
// sleeps. Returns 0, or -1 after fail().
int fault_step(const struct sync *s);
