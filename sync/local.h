// local.h - one worker alone: the reference for all backends.

#ifndef SYNC_LOCAL_H
#define SYNC_LOCAL_H

#include "sync/sync.h"

extern const struct sync_ops sync_local;

#endif
