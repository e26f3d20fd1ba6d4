// ring_tcp.c - the verbs of group.h over our ring's sockets: what Horovod does.
//
// Nobody is special: every member passes slices on to its right, adds its own
// share on the first way round and copies on the second (plan.h: which part
// when; flow.h: how slices overlap).
//
//     time     2(world-1) alpha + 2(world-1)/world S / bandwidth
//     payload  2(world-1)/world S out of and into each member

#include "horovod_ring/carriers.h"

#include "horovod_ring/flow.h"
#include "horovod_ring/tickets.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/span.h"

#include <sched.h>
#include <stdio.h>

struct ring {
    struct transport transport;
    struct flow flow;
    struct wire wire;
    struct group_op *ops;
    struct tickets tickets; // with the pairs
};

// "ring in", "ring out": a lane holds one direction of one group.
static struct span_lane *lane(const struct group *g, const char *direction)
{
    char name[SPAN_NAME];
    snprintf(name, sizeof name, "%s %s", g->name, direction);
    return spans_lane(g->job.spans, name);
}

static int ring_open(struct group *g)
{
    struct ring *r = g->state;
    const struct group_job *job = &g->job;
    struct transport_config tcp = {.name = g->name, .iface = job->iface};
    r->ops = mem_alloc(job->depth, sizeof *r->ops);
    if (!r->ops || wire_open(&r->wire, job->largest, job->slice_bytes) ||
        transport_open(&r->transport, &transport_tcp, job->cluster, &tcp))
        return -1;
    r->flow = (struct flow){
        .name = g->name,
        .transport = &r->transport,
        .wire = &r->wire,
        .ops = r->ops,
        .depth = job->depth,
        .slice_bytes = job->slice_bytes,
        .timeout_s = job->cluster->timeout_s,
        .plan = {.grain = job->grain},
        .in = {.lane = lane(g, "in")},
        .out = {.lane = lane(g, "out")},
    };
    flow_open(&r->flow);
    return tickets_open(&r->tickets, &pairs_tcp, g);
}

static int ring_begin(struct group *g, const struct group_op *op)
{
    struct ring *r = g->state;
    if (!tickets_post(&r->tickets, op))
        flow_post(&r->flow, op);
    return 0;
}

static int ring_advance(struct group *g, uint64_t *done)
{
    struct ring *r = g->state;
    const struct flow *f = &r->flow;
    const struct pairs *p = &r->tickets.pairs;
    if (flow_advance(&r->flow) ||
        tickets_advance(&r->tickets, flow_done(f), done))
        return -1;
    g->moved = (struct group_stats){.bytes_out = f->bytes[OUT] + p->bytes[OUT],
                                    .bytes_in = f->bytes[IN] + p->bytes[IN],
                                    .head_out = f->heads[OUT] + p->heads[OUT],
                                    .head_in = f->heads[IN] + p->heads[IN]};
    return 0;
}

// For pairs, and the flow if it has something to do.
static int wait_for_pairs(struct ring *r, uint64_t spin_ns)
{
    const struct flow *f = &r->flow;
    const struct group_op *first = tickets_first_pair(&r->tickets);
    struct pairs *p = &r->tickets.pairs;
    struct transport *t = &r->transport;
    uint64_t limit = (uint64_t)(f->timeout_s * 1e9);
    uint64_t idle = now_ns() - p->moved_ns;
    if (idle < spin_ns) {
        sched_yield(); // whom we wait for may need this very core
        return 0;
    }
    if (idle >= limit && first) {
        p->culprit = first->peer;
        return fail("%s: nothing from rank %d for %g s, in %s; try: look at "
                    "its log, or a longer timeout=",
                    f->name, first->peer, f->timeout_s,
                    group_verb_name(first->verb));
    }
    t->also = pairs_tcp_watch(p);
    if (t->also < 0)
        return -1;
    if (flow_done(f) < f->posted)
        return flow_wait(&r->flow, spin_ns);
    return t->ops->wait(t, 0, (int)((limit - idle) / 1000000) + 1);
}

static int ring_wait(struct group *g, uint64_t spin_ns)
{
    struct ring *r = g->state;
    if (r->tickets.pairs.pending > 0)
        return wait_for_pairs(r, spin_ns);
    r->transport.also = -1;
    return flow_wait(&r->flow, spin_ns);
}

static void ring_wake(struct group *g)
{
    struct ring *r = g->state;
    r->transport.ops->wake(&r->transport);
}

static void ring_abort(struct group *g)
{
    struct ring *r = g->state;
    struct pairs *p = &r->tickets.pairs;
    int culprit = r->flow.culprit < 0 ? p->culprit : r->flow.culprit;
    r->flow.culprit = p->culprit = culprit;
    flow_abort(&r->flow);
    pairs_abort(p);
}

static void ring_close(struct group *g)
{
    struct ring *r = g->state;
    transport_close(&r->transport);
    wire_close(&r->wire);
    tickets_close(&r->tickets);
    mem_free(r->ops);
}

const struct group_ops ring_tcp = {
    .name = "tcp",
    .threaded = true,
    .state_size = sizeof(struct ring),
    .open = ring_open,
    .begin = ring_begin,
    .advance = ring_advance,
    .wait = ring_wait,
    .wake = ring_wake,
    .abort = ring_abort,
    .close = ring_close,
};
