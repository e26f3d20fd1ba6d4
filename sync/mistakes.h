// mistakes.h - common mistakes in programs of this kind, made on purpose, so
// that their effects can be seen (experiments/mistakes.md). Off unless mistake=
// asks for one.

#pragma once

#include "sync/sync.h"

// Returns 0, or -1 after fail() if a mistake is asked for that cannot be made
// with these settings.
int mistakes_check(const struct sync *s);

// mistake=local_clip: clips this worker's own gradient before the sum, to the
// norm that the mean gradient may have. Otherwise does nothing.
void mistakes_clip(struct sync *s, const struct sync_in *in);

// How many updates a step makes with the same gradient: 2 with
// mistake=two_updates, else 1.
int mistakes_updates(const struct sync *s);
