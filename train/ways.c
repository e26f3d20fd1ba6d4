// ways.c - lists the strategy and the carriers of each backend, and the control
// planes.

#include "train/ways.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "cluster/mpi.h"
#include "cluster/zmq.h"
#include "config/backends.h"
#include "group/group.h"
#include "homework/homework.h"
#include "squeeze/squeezed.h"
#include "sync/sync.h"

#include <string.h>

// Declares what the rows name, so that a row needs no header.
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

static const struct cluster_ops *const control_planes[] = {&cluster_local,
                                                           &cluster_mpi,
                                                           &cluster_zmq};

enum { CONTROL_PLANES = sizeof control_planes / sizeof *control_planes };

const struct way *way_find(const struct backend *b)
{
    return &ways[b - backend_at(0)]; // both have backends.def's order
}

const struct sync_ops *strategy_find(const struct way *w,
                                     const struct sync_settings *s)
{
    if (!s->squeeze)
        return w->strategy;
    return w->strategy == &sync_replicas ? &sync_squeezed
           : w->strategy == &sync_lab    ? &sync_lab_lowrank
                                         : w->strategy;
}

const struct cluster_ops *
control_plane_find(const char *name, const struct backend *b, bool alone)
{
    int rank, launched_world;
    if (!strcmp(name, "auto")) {
        bool launched = cluster_launched(&rank, &launched_world);
        if (!alone)
            name = cluster_zmq.name;
        else if (launched && b->launch != LAUNCH_ALONE)
            name = cluster_mpi.name;
        else
            name = cluster_local.name;
    }
    for (int i = 0; i < CONTROL_PLANES; i++)
        if (!strcmp(control_planes[i]->name, name))
            return control_planes[i];
    fail("cluster=%s: this build has no such control plane", name);
    return NULL;
}
