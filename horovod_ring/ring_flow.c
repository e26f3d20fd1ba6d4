// ring_flow.c - the functions of a carrier, built from the flow and the pairs.

#include "horovod_ring/ring_flow.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/span.h"

#include <stdio.h>

// The lane "NAME in" or "NAME out": one direction of one group.
static struct span_lane *lane(const struct group *g, const char *direction)
{
    char name[SPAN_NAME];
    snprintf(name, sizeof name, "%s %s", g->name, direction);
    return spans_lane(g->job.spans, name);
}

int ring_flow_open(struct group *g, const struct transport_ops *transport,
                   const struct pairs_ops *pairs)
{
    struct ring_flow *r = g->state;
    const struct group_job *job = &g->job;
    struct transport_config tcp = {.name = g->name, .iface = job->iface};
    r->ops = mem_alloc(job->depth, sizeof *r->ops);
    if (!r->ops || wire_open(&r->wire, job->largest, job->slice_bytes) ||
        transport_open(&r->transport, transport, job->cluster, &tcp))
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
    return tickets_open(&r->tickets, pairs, g);
}

int ring_flow_begin(struct group *g, const struct group_op *op)
{
    struct ring_flow *r = g->state;
    if (!tickets_post(&r->tickets, op))
        flow_post(&r->flow, op);
    return 0;
}

int ring_flow_advance(struct group *g, uint64_t *done)
{
    struct ring_flow *r = g->state;
    const struct flow *f = &r->flow;
    const struct pairs *p = &r->tickets.pairs;
    if (flow_advance(&r->flow) ||
        tickets_advance(&r->tickets, flow_done(f), done))
        return -1;
    g->moved = f->counted;
    group_stats_add(&g->moved, &p->counted);
    return 0;
}

void ring_flow_abort(struct group *g)
{
    struct ring_flow *r = g->state;
    struct pairs *p = &r->tickets.pairs;
    int culprit = r->flow.culprit < 0 ? p->culprit : r->flow.culprit;
    r->flow.culprit = p->culprit = culprit;
    flow_abort(&r->flow);
    pairs_abort(p);
}

void ring_flow_close(struct group *g)
{
    struct ring_flow *r = g->state;
    transport_close(&r->transport);
    wire_close(&r->wire);
    tickets_close(&r->tickets);
    mem_free(r->ops);
}
