// outer.h - sync=outer: local SGD and DiLoCo (outer.c).

#pragma once

#include "sync/sync.h"

extern const struct sync_ops sync_outer;
