// flow.h - moves vectors round the ring, slice by slice.
//
// Two cursors go through the verbs (group.h) in order, one for sending and one
// for receiving. Each message is divided into slices. A slice can be sent as
// soon as the slice from which it is made has come in. So all links are busy at
// once, and adding overlaps receiving:
//
//     in     [a0][a1][a2][b0]..        a and b are messages
//     add        +a0  +a1  +a2
//     out    [z0][a0'][a1'][a2']..
//
// A worker that waits for long tells its right neighbour, between two slices,
// for which rank it waits. A worker that fails tells both neighbours which rank
// is at fault, so that all workers name the same one.

#pragma once

#include "horovod_ring/plan.h"
#include "horovod_ring/ring_wire.h"
#include "horovod_ring/streams.h"

struct span_lane;

struct cursor {
    uint64_t op;
    int message;
    size_t off; // elements of the message's span: where the slice begins
    // The slice being moved:
    bool busy;
    struct head head;
    size_t done; // bytes of head and payload moved so far
    char *payload;
    uint64_t begun_ns;
    struct span_lane *lane; // where slices are recorded; may be NULL
};

struct flow {
    // The caller sets these, plan.grain, and the lanes of `out` and `in`. All
    // pointers are borrowed.
    struct streams *streams; // STREAMS_RING; its name begins errors
    struct wire *wire;
    struct group_op *ops; // `depth` places: verb k at k % depth
    size_t depth, slice_bytes;
    double timeout_s;

    struct plan plan;
    uint64_t posted; // number of verbs so far
    struct cursor out, in;
    struct head back; // the head that comes from the right neighbour
    size_t back_done;

    uint64_t moved_ns; // when bytes last moved, or work arrived
    uint64_t since_ns; // the deadline does not count before (struct group)
    int blame;         // rank for which the left neighbour waits, or -1
    int told;          // rank that we have named to the right one, or -1
    struct group_stats counted;
};

// Initialises the members that the caller has not set; all of these are zero
// before.
void flow_open(struct flow *f);

// Adds one verb. Fewer than `depth` may be under way.
void flow_post(struct flow *f, const struct group_op *op);

// How many verbs are complete on this worker.
uint64_t flow_done(const struct flow *f);

// Moves everything that can be moved now. Returns 0, or -1 after fail().
int flow_advance(struct flow *f);

// Call it while a posted verb is not complete. Sleeps until more can be moved,
// or the transport is woken; returns at once if bytes moved less than `spin_ns`
// ago. Returns 0, or -1 after fail() if nothing has moved for timeout_s since
// since_ns.
int flow_wait(struct flow *f, uint64_t spin_ns);

// After a failure: tells both neighbours which rank is at fault.
void flow_abort(struct flow *f);
