// mistakes.h - what programs of this kind get wrong, done on purpose, so that
// its effect can be seen (experiments/mistakes.md). Off unless a key says so.

#ifndef SYNC_MISTAKES_H
#define SYNC_MISTAKES_H

#include "sync/sync.h"

// -1 after fail() where a mistake that is asked for cannot be made here.
int mistakes_check(const struct sync *s);

// mistake_local_clip=1: before the sum this worker's own gradient, of its own
// batch, is clipped to the norm that the mean may have. Nothing else.
void mistakes_clip(struct sync *s, const struct sync_in *in);

// mistake_two_updates=1: how many updates a step makes, with one gradient.
int mistakes_updates(const struct sync *s);

#endif
