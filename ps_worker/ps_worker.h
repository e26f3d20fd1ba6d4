// ps_worker.h - the parameter-server client, as the backends `sps` and `dps`.
//
// One client; sps has one server that owns everything, dps shards over several.

#ifndef PS_WORKER_PS_WORKER_H
#define PS_WORKER_PS_WORKER_H

#include "sync/sync.h"

extern const struct sync_ops sync_sps, sync_dps;

#endif
