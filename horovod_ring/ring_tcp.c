// ring_tcp.c - does the verbs of group.h over our ring's sockets, as Horovod
// does.
//
// All members do the same: each passes slices on to its right. The first
// time round the ring it adds its own share to them; the second time it passes
// them on unchanged. plan.h says which part is sent when, flow.h how slices
// overlap.
//
//     time     2(world-1) alpha + 2(world-1)/world S / bandwidth
//     payload  2(world-1)/world S out of and into each member

#include "horovod_ring/carriers.h"

#include "horovod_ring/ring_flow.h"

#include "base/base.h"
#include "cluster/cluster.h"

#include <sched.h>

static int ring_open(struct group *g)
{
    return ring_flow_open(g, &transport_tcp, &pairs_tcp);
}

// Waits for the pairs, and for the flow if it has something to do.
static int wait_for_pairs(struct group *g, uint64_t spin_ns)
{
    struct ring_flow *r = g->state;
    const struct flow *f = &r->flow;
    enum group_verb verb;
    int whom = tickets_awaited(&r->tickets, &verb);
    struct pairs *p = &r->tickets.pairs;
    struct transport *t = &r->transport;
    uint64_t limit = (uint64_t)(f->timeout_s * 1e9);
    uint64_t waited = group_waited(g->since_ns, p->moved_ns);
    if (now_ns() - p->moved_ns < spin_ns) {
        sched_yield(); // the rank we wait for may need this core
        return 0;
    }
    if (waited >= limit && whom >= 0) {
        p->culprit = whom;
        return fail("%s: nothing from rank %d for %g s, in %s; try: look at "
                    "its log, or a longer timeout=",
                    f->name, cluster_job_rank(p->ranks, whom), f->timeout_s,
                    group_verb_name(verb));
    }
    t->also = pairs_tcp_watch(p);
    if (t->also < 0)
        return -1;
    if (flow_done(f) < f->posted)
        return flow_wait(&r->flow, spin_ns);
    return t->ops->wait(t, 0, (int)((limit - waited) / 1000000) + 1);
}

static int ring_wait(struct group *g, uint64_t spin_ns)
{
    struct ring_flow *r = g->state;
    r->flow.since_ns = g->since_ns;
    if (r->tickets.pairs.pending > 0)
        return wait_for_pairs(g, spin_ns);
    r->transport.also = -1;
    return flow_wait(&r->flow, spin_ns);
}

static void ring_wake(struct group *g)
{
    struct ring_flow *r = g->state;
    r->transport.ops->wake(&r->transport);
}

const struct group_ops ring_tcp = {
    .name = "tcp",
    .threaded = true,
    .state_size = sizeof(struct ring_flow),
    .open = ring_open,
    .begin = ring_flow_begin,
    .advance = ring_flow_advance,
    .wait = ring_wait,
    .wake = ring_wake,
    .abort = ring_flow_abort,
    .close = ring_flow_close,
};
