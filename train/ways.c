// ways.c - strategy and carriers of each row of the table of backends
// (config/backends.def), and ways to meet.

#include "train/ways.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/mpi.h"
#include "cluster/zmq.h"
#include "config/backends.h"
#include "group/group.h"
#include "sync/sync.h"

#include <string.h>

// What rows name is declared here, so that a row needs no header.
#define CARRIER(carrier) extern const struct group_ops carrier;
#if defined(LOCKSTEP_NCCL)
#define NCCL CARRIER
#else
#define NCCL(carrier)
#endif
#define BACKEND(name, strategy, carriers, ...)                                 \
    extern const struct sync_ops strategy;                                     \
    carriers
#include "config/backends.def"
#undef CARRIER

#define CARRIER(carrier) &carrier,
static const struct way ways[] = {
#define BACKEND(name, strategy, carriers, ...)                                 \
    {&strategy, (const struct group_ops *const[]){carriers NULL}},
#include "config/backends.def"
};

static const struct cluster_ops *const meetings[] = {&cluster_local,
                                                     &cluster_mpi,
                                                     &cluster_zmq};

enum { MEETINGS = sizeof meetings / sizeof *meetings };

const struct way *way_find(const struct backend *b)
{
    return &ways[b - backend_at(0)]; // both have the order of the file
}

const struct cluster_ops *meeting_find(const char *name,
                                       const struct backend *b, int world)
{
    int rank, launched_world;
    if (!strcmp(name, "auto")) {
        if (cluster_launched(&rank, &launched_world) &&
            b->launch != LAUNCH_ALONE)
            name = cluster_mpi.name;
        else
            name = world == 1 ? cluster_local.name : cluster_zmq.name;
    }
    for (int i = 0; i < MEETINGS; i++)
        if (!strcmp(meetings[i]->name, name))
            return meetings[i];
    fail("cluster=%s: this build cannot meet that way", name);
    return NULL;
}
