// fault.h - faults on purpose (inject=), for tests of failures.

#ifndef SYNC_FAULT_H
#define SYNC_FAULT_H

#include "sync/sync.h"

// nan, inf: a gradient of bucket 0 goes bad before it is handed over. 0, or -1
// after fail().
int fault_gradient(struct sync *s);

// kill, fail, delay: happens before the strategy's step. 0, or -1 after fail().
int fault_step(const struct sync *s);

#endif
