// ps_worker.h - the strategy of parameter servers.
//
// One client: sps has one server that owns everything, dps shards over several.

#ifndef PS_WORKER_PS_WORKER_H
#define PS_WORKER_PS_WORKER_H

#include "sync/sync.h"

extern const struct sync_ops sync_servers;

#endif
