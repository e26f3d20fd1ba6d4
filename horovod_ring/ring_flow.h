// ring_flow.h - the functions of a carrier, built from the ring's flow and
// pairs. All carriers that move bytes by a transport share them.

#ifndef HOROVOD_RING_RING_FLOW_H
#define HOROVOD_RING_RING_FLOW_H

#include "horovod_ring/flow.h"
#include "horovod_ring/tickets.h"

// The state of such a carrier.
struct ring_flow {
    struct transport transport;
    struct flow flow;
    struct wire wire;
    struct group_op *ops;
    struct tickets tickets; // with the pairs
};

// Functions for struct group_ops. Each carrier has its own wait().
int ring_flow_open(struct group *g, const struct transport_ops *transport,
                   const struct pairs_ops *pairs);
int ring_flow_begin(struct group *g, const struct group_op *op);
int ring_flow_advance(struct group *g, uint64_t *done);
void ring_flow_abort(struct group *g);
void ring_flow_close(struct group *g);

#endif
