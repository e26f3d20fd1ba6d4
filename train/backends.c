// backends.c - the table of ways to agree, and of ways to meet.
//
// The only place that knows them all: a new backend is one row here.

#include "train/backends.h"

#include "allreduce/allreduce.h"
#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/mpi.h"
#include "cluster/zmq.h"
#include "horovod_ring/ring.h"
#include "ps_worker/ps_worker.h"
#include "sync/local.h"

#include <string.h>

// Of several of one name the first that suits a job takes it.
static const struct sync_ops *const backends[] = {
    &sync_local,          &sync_sps,       &sync_dps,
#if defined(LOCKSTEP_NCCL)
    &sync_allreduce_nccl, &sync_ring_nccl,
#endif
    &sync_allreduce,      &sync_ring_shared, &sync_ring,
};

static const struct cluster_ops *const meetings[] = {&cluster_local,
                                                     &cluster_mpi,
                                                     &cluster_zmq};

enum {
    BACKENDS = sizeof backends / sizeof *backends,
    MEETINGS = sizeof meetings / sizeof *meetings,
};

const struct sync_ops *backend_find(const char *name)
{
    char names[256] = "";
    for (int i = 0; i < BACKENDS; i++) {
        if (!strcmp(backends[i]->name, name))
            return backends[i];
        strcat(strcat(names, " "), backends[i]->name);
    }
    fail("sync=%s: this build has no such backend; try:%s", name, names);
    return NULL;
}

const struct sync_ops *backend_for(const char *name, const struct sync_job *job)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (strcmp(backends[i]->name, name))
            continue;
        int suits = backends[i]->suits ? backends[i]->suits(job) : 1;
        if (suits)
            return suits > 0 ? backends[i] : NULL;
    }
    return backend_find(name);
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
