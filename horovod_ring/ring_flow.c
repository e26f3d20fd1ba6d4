// ring_flow.c - the functions of a carrier, built from the flow and the pairs.

#include "horovod_ring/ring_flow.h"

#include "base/base.h"
#include "cluster/cluster.h"
#include "telemetry/span.h"

#include <sched.h>
#include <stdio.h>

// The lane "NAME in" or "NAME out": one direction of one group.
static struct span_lane *lane(const struct group *g, const char *direction)
{
    char name[SPAN_NAME];
    snprintf(name, sizeof name, "%s %s", g->name, direction);
    return spans_lane(g->job.spans, name);
}

int ring_flow_open(struct group *g, const struct streams_ops *ops)
{
    struct ring_flow *r = g->state;
    const struct group_job *job = &g->job;
    const struct streams_config config = {.name = g->name, .iface = job->iface};
    r->ops = mem_alloc(job->depth, sizeof *r->ops);
    if (!r->ops || wire_open(&r->wire, job->largest, job->slice_bytes) ||
        streams_open(&r->streams, ops, job->cluster, &config))
        return -1;
    r->flow = (struct flow){
        .streams = &r->streams,
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
    return pairs_open(&r->pairs, ops, g);
}

int ring_flow_begin(struct group *g, const struct group_op *op)
{
    struct ring_flow *r = g->state;
    if (!pairs_post(&r->pairs, op))
        flow_post(&r->flow, op);
    return 0;
}

int ring_flow_advance(struct group *g, uint64_t *done)
{
    struct ring_flow *r = g->state;
    const struct flow *f = &r->flow;
    const struct pairs *p = &r->pairs;
    if (flow_advance(&r->flow) || pairs_advance(&r->pairs, flow_done(f), done))
        return -1;
    g->moved = f->counted;
    group_stats_add(&g->moved, &p->counted);
    return 0;
}

// Waits for the pairs, and for the flow if it has something to do.
static int wait_for_pairs(struct ring_flow *r, uint64_t spin_ns)
{
    const struct flow *f = &r->flow;
    struct pairs *p = &r->pairs;
    enum group_verb verb;
    int whom = pairs_awaited(&r->pairs, &verb);
    uint64_t limit = (uint64_t)(f->timeout_s * 1e9);
    uint64_t waited = group_waited(f->since_ns, p->moved_ns);
    if (now_ns() - p->moved_ns < spin_ns) {
        sched_yield(); // the rank we wait for may need this core
        return 0;
    }
    if (waited >= limit && whom >= 0)
        return streams_late(&p->streams, whom, f->timeout_s,
                            group_verb_name(verb));
    pairs_want(p);
    r->streams.beside = &p->streams;
    if (flow_done(f) < f->posted)
        return flow_wait(&r->flow, spin_ns);
    r->streams.links[LEFT].wants = r->streams.links[RIGHT].wants = 0;
    return r->streams.ops->wait(&r->streams,
                                (int)((limit - waited) / 1000000) + 1);
}

int ring_flow_wait(struct group *g)
{
    struct ring_flow *r = g->state;
    r->flow.since_ns = g->since_ns;
    r->streams.beside = NULL;
    return r->pairs.pending > 0 ? wait_for_pairs(r, g->spin_ns)
                                : flow_wait(&r->flow, g->spin_ns);
}

void ring_flow_abort(struct group *g)
{
    struct ring_flow *r = g->state;
    struct pairs *p = &r->pairs;
    if (r->streams.culprit < 0)
        r->streams.culprit = p->streams.culprit;
    p->streams.culprit = r->streams.culprit;
    flow_abort(&r->flow);
    pairs_abort(p);
}

void ring_flow_close(struct group *g)
{
    struct ring_flow *r = g->state;
    streams_close(&r->streams);
    wire_close(&r->wire);
    pairs_close(&r->pairs);
    mem_free(r->ops);
}
