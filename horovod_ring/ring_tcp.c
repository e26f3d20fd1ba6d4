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

static int ring_open(struct group *g)
{
    return ring_flow_open(g, &streams_tcp);
}

static void ring_wake(struct group *g)
{
    struct ring_flow *r = g->state;
    r->streams.ops->wake(&r->streams);
}

const struct group_ops ring_tcp = {
    .name = "tcp",
    .threaded = true,
    .state_size = sizeof(struct ring_flow),
    .open = ring_open,
    .begin = ring_flow_begin,
    .advance = ring_flow_advance,
    .wait = ring_flow_wait,
    .wake = ring_wake,
    .abort = ring_flow_abort,
    .close = ring_flow_close,
};
