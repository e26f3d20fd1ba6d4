// ring_virtual.c - does the verbs of group.h with our ring on a virtual
// cluster: all members are in one process, on the clock of a model
// (virtual/virtual.h).
//
// Plan, flow, slices, sums, law and error messages are those of ring_tcp. The
// cluster must be a cluster_virtual().

#include "horovod_ring/carriers.h"

#include "horovod_ring/pairs_virtual.h"
#include "horovod_ring/ring_flow.h"
#include "horovod_ring/transport_virtual.h"

// No real time passes while a member waits: the cluster's deadline counts.
static const double no_deadline_s = 1e6;

static int ring_open(struct group *g)
{
    struct ring_flow *r = g->state;
    int rc = ring_flow_open(g, &transport_virtual, &pairs_virtual);
    r->flow.timeout_s = no_deadline_s;
    return rc;
}

static int ring_wait(struct group *g, uint64_t spin_ns)
{
    struct ring_flow *r = g->state;
    struct pairs *p = &r->tickets.pairs;
    struct transport *t = &r->transport;
    struct virtual_line *const *lines = NULL;
    int n = p->pending > 0 ? pairs_virtual_watch(p, &lines) : 0;
    (void)spin_ns;
    if (n < 0)
        return -1;
    transport_virtual_also(t, lines, n);
    int rc = flow_done(&r->flow) < r->flow.posted ? flow_wait(&r->flow, 0)
                                                  : t->ops->wait(t, 0, -1);
    if (rc && r->flow.culprit < 0)
        r->flow.culprit = transport_virtual_missing(t);
    return rc;
}

const struct group_ops ring_virtual = {
    .name = "virtual",
    .state_size = sizeof(struct ring_flow),
    .open = ring_open,
    .begin = ring_flow_begin,
    .advance = ring_flow_advance,
    .wait = ring_wait,
    .abort = ring_flow_abort,
    .close = ring_flow_close,
};
