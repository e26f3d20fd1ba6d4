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

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/span.h"

#include <stdio.h>

struct ring {
    struct transport *transport;
    struct flow flow;
    struct wire wire;
    struct group_op *ops;
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
    struct flow_config config = {
        .name = g->name,
        .transport = r->transport,
        .wire = &r->wire,
        .ops = r->ops,
        .depth = job->depth,
        .slice_bytes = job->slice_bytes,
        .grain = job->grain,
        .timeout_s = job->cluster->timeout_s,
        .in = lane(g, "in"),
        .out = lane(g, "out"),
    };
    flow_open(&r->flow, &config);
    return 0;
}

static int ring_begin(struct group *g, const struct group_op *op)
{
    struct ring *r = g->state;
    flow_post(&r->flow, op);
    return 0;
}

static int ring_advance(struct group *g, uint64_t *done)
{
    struct ring *r = g->state;
    struct flow *f = &r->flow;
    if (flow_advance(f))
        return -1;
    g->moved = (struct group_stats){.bytes_out = f->bytes[OUT],
                                    .bytes_in = f->bytes[IN],
                                    .head_out = f->heads[OUT],
                                    .head_in = f->heads[IN]};
    *done = flow_done(f);
    return 0;
}

static int ring_wait(struct group *g, uint64_t spin_ns)
{
    struct ring *r = g->state;
    return flow_wait(&r->flow, spin_ns);
}

static void ring_wake(struct group *g)
{
    struct ring *r = g->state;
    r->transport->ops->wake(r->transport);
}

static void ring_abort(struct group *g)
{
    struct ring *r = g->state;
    flow_abort(&r->flow);
}

static void ring_close(struct group *g)
{
    struct ring *r = g->state;
    transport_close(&r->transport);
    wire_close(&r->wire);
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
