// local.c - one worker, no exchange: the reference for all backends.
//
// Every other backend must equal it: to the bit on small integers, within
// rounding in training. sync.c updates; local has nothing else to do.

#include "sync/local.h"

#include "base/base.h"
#include "cluster/cluster.h"

static int local_open(struct sync *s)
{
    if (s->job.cluster->world != 1)
        return fail("local: needs one worker, there are %d; try: sync=ring",
                    s->job.cluster->world);
    return 0;
}

const struct sync_ops sync_local = {
    .on_device = true,
    .state_size = 1,
    .open = local_open,
};
