// slots.h - saves and loads the optimiser's state, range by range, if the
// workers update the parameters. A slot is one vector of that state.

#ifndef SYNC_SLOTS_H
#define SYNC_SLOTS_H

#include "sync/sync.h"

// sync_save() and sync_load() for strategies whose update is s->rule. Worker 0
// visits the whole state. Return 0, or -1 after fail().
int slots_save(struct sync *s, sync_visit *visit, void *ctx);
int slots_load(struct sync *s, sync_visit *visit, void *ctx);

// slots_read gives every range of slot i of s->rule to visit(). slots_fill lets
// visit() write every range of that slot. Both pass `slot` to visit() as the
// number of the slot. Both return 0, or -1 after fail(); slots_fill returns
// SYNC_ABSENT if visit() does.
int slots_read(const struct sync *s, int i, int slot, sync_visit *visit,
               void *ctx);
int slots_fill(struct sync *s, int i, int slot, sync_visit *visit, void *ctx);

#endif
