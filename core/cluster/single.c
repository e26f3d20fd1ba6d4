// single.c - a cluster of one.

#include "cluster/cluster.h"

#include "base/base.h"

#include <string.h>

static int local_open(struct cluster *c, const struct cluster_config *config)
{
    if (config->world != 1)
        return fail("cluster: %d workers need mpi or zmq to find each other",
                    config->world);
    c->rank = 0;
    c->world = 1;
    return 0;
}

static int local_allgather(struct cluster *c, const void *in, void *out,
                           size_t bytes)
{
    (void)c;
    memcpy(out, in, bytes);
    return 0;
}

const struct cluster_ops cluster_local = {
    .open = local_open,
    .allgather = local_allgather,
};
