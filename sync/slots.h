// slots.h - the optimiser's state of workers that update themselves, as ranges.

#ifndef SYNC_SLOTS_H
#define SYNC_SLOTS_H

#include "sync/sync.h"

// sync_save() and sync_load() where s->rule is the update. Worker 0 visits all.
// 0, or -1 after fail().
int slots_save(struct sync *s, int rc, sync_visit *visit, void *ctx);
int slots_load(struct sync *s, sync_visit *visit, void *ctx);

// Visit slot i of s->rule under the number `slot`; fill it likewise: then
// SYNC_ABSENT where visit() says so. 0, or -1 after fail().
int slots_read(const struct sync *s, int i, int slot, sync_visit *visit,
               void *ctx);
int slots_fill(struct sync *s, int i, int slot, sync_visit *visit, void *ctx);

#endif
