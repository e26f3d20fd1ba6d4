// slots.h - the optimiser's state of workers that update themselves, as ranges.

#ifndef SYNC_SLOTS_H
#define SYNC_SLOTS_H

#include "sync/sync.h"

// sync_save() and sync_load() for strategies whose update is s->rule. Worker 0
// visits the whole state. Return 0, or -1 after fail().
int slots_save(struct sync *s, int rc, sync_visit *visit, void *ctx);
int slots_load(struct sync *s, sync_visit *visit, void *ctx);

// slots_read visits slot i of s->rule with the number `slot`. slots_fill lets
// visit() fill it; it returns SYNC_ABSENT if visit() does. Both return 0, or -1
// after fail().
int slots_read(const struct sync *s, int i, int slot, sync_visit *visit,
               void *ctx);
int slots_fill(struct sync *s, int i, int slot, sync_visit *visit, void *ctx);

#endif
