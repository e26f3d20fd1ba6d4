// flow.h - vectors on their way round the ring, piece by piece.
//
// Two cursors go through the verbs (group.h) in order, one for sending and one
// for receiving. Each message is cut into slices. A slice may leave as soon as
// the slice from which it is made has come in. So all links are busy at once,
// and adding overlaps receiving:
//
//     in     [a0][a1][a2][b0]..        a message is a, b, ..
//     add        +a0  +a1  +a2
//     out    [z0][a0'][a1'][a2']..
//
// Every slice has a head of 16 bytes that says what it is. A worker that waits
// for long tells its right neighbour, between two slices, for whom it waits. A
// worker that fails tells both neighbours which rank is to blame, so that all
// workers name the same one.

#ifndef HOROVOD_RING_FLOW_H
#define HOROVOD_RING_FLOW_H

#include "horovod_ring/plan.h"
#include "horovod_ring/ring_wire.h"
#include "horovod_ring/transport.h"

struct span_lane;

struct head {
    uint32_t kind;    // enum head_kind in flow.c
    uint32_t op;      // number of the verb
    uint32_t message; // or the rank that is to blame
    uint32_t bytes;   // of payload that follow
};

struct cursor {
    uint64_t op;
    int message;
    size_t off; // elements of the message's span: where the slice begins
    // The slice being moved:
    bool busy;
    struct head head;
    size_t done; // bytes of head and payload
    char *payload;
    uint64_t begun_ns;
    struct span_lane *lane; // where slices are recorded; may be NULL
};

struct flow {
    // The caller's, borrowed; with plan.grain, and the lanes of out and in.
    const char *name; // begins errors
    struct transport *transport;
    struct wire *wire;
    struct group_op *ops; // `depth` places: verb k at k % depth
    size_t depth, slice_bytes;
    double timeout_s;

    struct plan plan;
    uint64_t posted; // verbs so far
    struct cursor out, in;
    struct head back; // what comes from the right
    size_t back_done;

    uint64_t moved_ns; // when bytes last moved, or work arrived
    int blame, told;   // who our left waits for; whom we named; -1: nobody
    int culprit;       // after a failure: whose fault, or -1
    struct group_stats counted;
};

// Sets the other members. The caller has set its own; all others are zero.
void flow_open(struct flow *f);

// One more verb; fewer than `depth` may be under way.
void flow_post(struct flow *f, const struct group_op *op);

// How many verbs are complete on this worker.
uint64_t flow_done(const struct flow *f);

// Move all that can be moved now. 0, or -1 after fail().
int flow_advance(struct flow *f);

// With something posted that is not complete: sleep until more can be moved, or
// the transport is woken; return at once within `spin_ns` of the last move. 0,
// or -1 after fail() when nothing has moved for too long.
int flow_wait(struct flow *f, uint64_t spin_ns);

// After a failure: tell both neighbours.
void flow_abort(struct flow *f);

#endif
