// ring_virtual.c - does the verbs of group.h with our ring on a virtual
// cluster: all members are in one process, on the clock of a model
// (virtual/virtual.h).
//
// Plan, flow, slices, sums, law and error messages are those of ring_tcp. The
// cluster must be a cluster_virtual().

#include "horovod_ring/carriers.h"

#include "horovod_ring/ring_flow.h"
#include "horovod_ring/streams_virtual.h"

// No real time passes while a member waits: the cluster's deadline counts.
static const double no_deadline_s = 1e6;

static int ring_open(struct group *g)
{
    struct ring_flow *r = g->state;
    int rc = ring_flow_open(g, &streams_virtual);
    r->flow.timeout_s = no_deadline_s;
    return rc;
}

const struct group_ops ring_virtual = {
    .name = "virtual",
    .state_size = sizeof(struct ring_flow),
    .open = ring_open,
    .begin = ring_flow_begin,
    .advance = ring_flow_advance,
    .wait = ring_flow_wait_unspun,
    .abort = ring_flow_abort,
    .close = ring_flow_close,
};
