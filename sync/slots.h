// slots.h - saves and loads the optimiser's state, range by range, if the
// workers update the parameters. A slot is one vector of that state.

#pragma once

#include "sync/sync.h"

// The state of a strategy whose update is s->rule: worker 0 visits all of it.
extern const struct sync_state_ops slots_of_rule;

// How many slots the optimiser has, and their names.
int slots_count(const struct sync *s);
void slots_name(const struct sync *s, int slot, char name[SYNC_SLOT_NAME]);

// Gives every range of slot i of s->rule to visit(), as slot `slot`. fills:
// visit() writes the range. Returns 0, or -1 after fail(), or SYNC_ABSENT if
// visit() does.
int slots_visit(const struct sync *s, int i, int slot, bool fills,
                sync_visit *visit, void *ctx);
