// ps_worker.h - the strategy of parameter servers.
//
// Both backends use it: sps has one server that owns everything, dps divides
// the vector among several.

#pragma once

#include "sync/sync.h"

extern const struct sync_ops sync_servers;
