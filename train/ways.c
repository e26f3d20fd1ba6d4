// ways.c - lists the strategy and the carriers of each backend.

#include "train/ways.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "config/backends.h"
#include "group/group.h"
#include "homework/homework.h"
#include "squeeze/squeezed.h"
#include "sync/sync.h"

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

const struct group_ops *carrier_between_gpus(void)
{
#if defined(LOCKSTEP_NCCL)
    return &ring_nccl;
#else
    return NULL;
#endif
}

const struct cluster_ops *control_plane_find(const struct backend *b,
                                             bool alone)
{
    int rank, world;
    if (!alone)
        return &cluster_zmq;
    return b->launch != LAUNCH_ALONE && cluster_launched(&rank, &world)
               ? &cluster_mpi
               : &cluster_local;
}
