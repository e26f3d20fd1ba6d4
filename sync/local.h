// local.h - one worker alone: the reference for all backends.

#pragma once

#include "sync/sync.h"

extern const struct sync_ops sync_local;
