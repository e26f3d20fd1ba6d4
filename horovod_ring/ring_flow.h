// ring_flow.h - the functions of a carrier, built from the ring's flow and
// pairs. All carriers whose streams can wait share them.

#pragma once

#include "horovod_ring/flow.h"
#include "horovod_ring/pairs.h"

// The state of such a carrier.
struct ring_flow {
    struct streams streams; // of the ring
    struct flow flow;
    struct wire wire;
    struct group_op *ops;
    struct pairs pairs; // and the order of all verbs
};

// Functions for struct group_ops.
int ring_flow_open(struct group *g, const struct streams_ops *ops);
int ring_flow_begin(struct group *g, const struct group_op *op);
int ring_flow_advance(struct group *g, uint64_t *done);
int ring_flow_wait(struct group *g);
void ring_flow_abort(struct group *g);
void ring_flow_close(struct group *g);
