// network.h - messages on their way, and when each of them arrives: the
// alpha-beta model of virtual.h, without ranks or threads.
//
// A send makes a message. A receive that names its source gets at once the
// oldest message that no receive has, or waits for the next one. So only two
// kinds of event need a time: a message begins to move, and a receive from
// anybody takes a message. network_next() gives the time of the next event, and
// network_step() lets it happen. The caller posts operations in the order of
// time, and none that is later than the next event. So at every event all
// operations before it are known.

#ifndef VIRTUAL_NETWORK_H
#define VIRTUAL_NETWORK_H

#include "virtual/virtual.h"

#include <math.h>

enum { NETWORK_ANYBODY = -1 };

// One side of a message, as a rank posted it.
struct network_op {
    int rank, peer; // peer may be NETWORK_ANYBODY, until there is a message
    int stream;     // with VIRTUAL_ENVELOPE: messages that announce others
    bool sends;
    bool any;         // a receive from anybody
    const void *from; // of a send
    void *to;         // of a receive
    size_t bytes;     // exactly; if the peer is anybody, at most
    double ready_s;
    double done_s; // INFINITY as long as it is unknown
    bool closed;   // it failed: the peer's links are closed
    long number;   // counts this rank's messages to this peer, or from it, from
                   // 1; an envelope has the number of the next message
    struct network_message *message; // NULL: none yet
    struct network_op *next;         // in the order of posting
};

struct network;

// Counts bytes in result->rank[] and logs in result->messages. NULL after
// fail().
struct network *network_open(const struct virtual_setup *setup,
                             struct virtual_result *result);
void network_close(struct network **n); // takes NULL

// Posts an operation. Its first block of members is filled in. The operation
// belongs to the caller, and must stay until network_drop(). 0, or -1 after
// fail().
int network_post(struct network *n, struct network_op *op);

// network_next(): the time of the next event, or INFINITY if there is none.
// network_step() lets it happen: 0, or -1 after fail() if memory is short.
double network_next(struct network *n);
int network_step(struct network *n);

// Bytes of an operation's message; 0 if it has none.
size_t network_bytes(const struct network_op *op);

// Forgets an operation at time `now`. With `take` it is complete, and received
// data goes to op->to first. Without `take`, a send that does not move yet is
// taken back. Then the remaining receives are matched as if it had never been
// posted. If a receive is given up, the remaining messages are matched anew in
// the same way.
void network_drop(struct network *n, struct network_op *op, bool take,
                  double now);

// Closes a rank's links. Operations that name this rank fail at once, and later
// ones fail, too. Messages that move already arrive.
void network_shut(struct network *n, int rank, double now);

#endif
