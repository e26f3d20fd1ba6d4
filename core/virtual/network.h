// network.h - messages on their way, and when each of them arrives: the
// alpha-beta model of virtual.h, without ranks or threads.
//
// A send makes a message. A receive that names its source is matched at once
// with the oldest message that nobody has, or waits for the next one. What is
// left to time are two kinds of event: a message begins to move, and a receive
// from anybody takes a message. network_next() says when the next event is,
// network_step() lets it happen. The caller posts in the order of time, and
// nothing later than the next event: so every event happens when all that could
// come before it is known.

#ifndef VIRTUAL_NETWORK_H
#define VIRTUAL_NETWORK_H

#include "virtual/virtual.h"

#include <math.h>

enum { NETWORK_ANYBODY = -1 };

// One side of a message, as a rank posted it.
struct network_op {
    int rank, peer; // peer may be NETWORK_ANYBODY, until there is a message
    int stream;     // with VIRTUAL_ENVELOPE: what announces its messages
    bool sends;
    bool any;         // a receive from anybody
    const void *from; // of a send
    void *to;         // of a receive
    size_t bytes;     // exactly; at most, where the peer is anybody
    double ready_s;
    double done_s; // INFINITY until it is known
    bool closed;   // it failed: the peer's links are closed
    long number;   // of the messages that this rank sends to, or receives from,
                   // this peer, from 1; an envelope has the next one's
    struct network_message *message; // NULL: none yet
    struct network_op *next;         // in the order of posting
};

struct network;

// Counts bytes in result->rank[] and logs in result->messages. NULL after
// fail().
struct network *network_open(const struct virtual_setup *setup,
                             struct virtual_result *result);
void network_close(struct network **n); // takes NULL

// Post an operation whose first block of members is filled. It belongs to the
// caller, and must stay until network_drop(). 0, or -1 after fail().
int network_post(struct network *n, struct network_op *op);

// When the next event is; INFINITY: there is none. Then let it happen: 0, or -1
// after fail() where memory is short.
double network_next(struct network *n);
int network_step(struct network *n);

// Bytes of the message that an operation has; 0: it has none.
size_t network_bytes(const struct network_op *op);

// Forget an operation at time `now`. `take`: it is complete, and what was
// received goes to op->to first. A send that does not move yet is taken back,
// and the receives that remain are matched as if it had never been; so are the
// messages that remain where a receive is given up.
void network_drop(struct network *n, struct network_op *op, bool take,
                  double now);

// A rank's links are closed: operations that name it fail at once, and so do
// those that will. What moves already arrives.
void network_shut(struct network *n, int rank, double now);

#endif
