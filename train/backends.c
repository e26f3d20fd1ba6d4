// backends.c - the table of ways to agree, and of ways to meet.
//
// The only place that knows them all: a new backend is one row here.

#include "train/backends.h"

#include "allreduce/carriers.h"
#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/mpi.h"
#include "cluster/zmq.h"
#include "horovod_ring/carriers.h"
#include "ps_worker/ps_worker.h"
#include "sync/local.h"
#include "sync/replicas.h"

#include <string.h>

// The best first: on the GPUs, in memory, over sockets.
static const struct group_ops *const library[] = {
#if defined(LOCKSTEP_NCCL)
    &library_nccl,
#endif
    &library_mpi,
    NULL,
};

static const struct group_ops *const ring[] = {
#if defined(LOCKSTEP_NCCL)
    &ring_nccl,
#endif
    &ring_shm,
    &ring_tcp,
    NULL,
};

static const struct way ways[] = {
    {"local", &sync_local, NULL},        {"sps", &sync_servers, NULL},
    {"dps", &sync_servers, NULL},        {"allreduce", &sync_replicas, library},
    {"ring", &sync_replicas, ring},
};

static const struct cluster_ops *const meetings[] = {&cluster_local,
                                                     &cluster_mpi,
                                                     &cluster_zmq};

enum {
    WAYS = sizeof ways / sizeof *ways,
    MEETINGS = sizeof meetings / sizeof *meetings,
};

const struct way *way_find(const char *name)
{
    for (int i = 0; i < WAYS; i++)
        if (!strcmp(ways[i].name, name))
            return &ways[i];
    fail("sync=%s: this build has no such backend", name);
    return NULL;
}

const struct cluster_ops *meeting_find(const char *name, const char *sync,
                                       int world)
{
    int rank, launched_world;
    if (!strcmp(name, "auto")) {
        if (cluster_launched(&rank, &launched_world) && strcmp(sync, "local"))
            name = "mpi";
        else
            name = world == 1 ? "local" : "zmq";
    }
    for (int i = 0; i < MEETINGS; i++)
        if (!strcmp(meetings[i]->name, name))
            return meetings[i];
    fail("cluster=%s: this build cannot meet that way", name);
    return NULL;
}
