// local.h - one worker, nobody to agree with: the oracle of all backends.

#ifndef SYNC_LOCAL_H
#define SYNC_LOCAL_H

#include "sync/sync.h"

extern const struct sync_ops sync_local;

#endif
