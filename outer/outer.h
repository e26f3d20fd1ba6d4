// outer.h - sync=outer: local SGD and DiLoCo (outer.c).

#ifndef OUTER_OUTER_H
#define OUTER_OUTER_H

#include "sync/sync.h"

extern const struct sync_ops sync_outer;

#endif
