// network.h - messages under way, and when each of them arrives: the alpha-beta
// model of virtual.h, without ranks or threads.
//
// A send makes a message. A receive that names its source is matched at once
// with the oldest unmatched message, or waits for the next one. So only two
// kinds of event need a time: a message begins to move, and a receive from any
// rank takes a message. network_next() gives the time of the next event, and
// network_step() executes it. The caller posts operations in the order of time,
// and none later than the next event. So at every event all earlier operations
// are known.

#pragma once

#include "virtual/virtual.h"

#include <math.h>

enum { NETWORK_ANYBODY = -1 };

// One side of a message, as a rank posted it.
struct network_op {
    int rank, peer; // peer is NETWORK_ANYBODY until a receive from any rank
                    // has a message
    int stream;     // with VIRTUAL_ENVELOPE: messages that announce others
    bool sends;
    bool any;         // a receive from any rank
    const void *from; // of a send
    void *to;         // of a receive
    size_t bytes;     // exactly; of a receive from any rank, at most
    double ready_s;
    double done_s; // INFINITY while it is unknown
    bool closed;   // it failed: the peer's links are closed
    long number;   // of this rank's messages to this peer (or from it), from 1;
                   // an envelope has the number of the next message
    struct network_message *message; // NULL: none yet
    struct network_op *next;         // in the order of posting
};

struct network;

// The network counts bytes in result->rank[], and logs messages in
// result->messages. setup and result are borrowed. NULL after fail().
struct network *network_open(const struct virtual_setup *setup,
                             struct virtual_result *result);
void network_close(struct network **n); // takes NULL

// Posts an operation, whose members up to ready_s are set. The operation
// belongs to the caller, and must stay in place until network_drop(). 0, or -1
// after fail().
int network_post(struct network *n, struct network_op *op);

// network_next(): the time of the next event, or INFINITY if there is none.
// network_step() executes it: 0, or -1 after fail() if memory is short.
double network_next(struct network *n);
int network_step(struct network *n);

// The bytes of an operation's message; 0 if it has none.
size_t network_bytes(const struct network_op *op);

// Removes an operation at time `now`. With `take` it is complete, and received
// data are first copied to op->to. Without `take`, a send that does not move
// yet is withdrawn, and the remaining receives are matched as if it had never
// been posted. If a receive is withdrawn, the remaining messages are matched
// again in the same way.
void network_drop(struct network *n, struct network_op *op, bool take,
                  double now);

// Closes a rank's links at time `now`. Operations that name this rank fail at
// once, and so do later ones. Messages that already move arrive.
void network_shut(struct network *n, int rank, double now);
