// pairs.h - messages from one member to another: send, recv and all_to_all.
//
// Each member has two lines to each other member, one out and one in: the
// streams of a link (streams.h). A line is a queue of messages. A message is a
// head and the vector, sent from its own memory:
//
//     out   [head|vector 0][head|vector 1]..      to member 2
//     in    [head|vector 0]..                     from member 2
//
// All lines move at once, so no order of sends and receives on two members can
// block both. A message waits in the stream until it is received. An fp32
// vector with a 16-bit wire travels in pieces that are cast on the way; the
// sender's vector stays as it is.
//
// The payload of a message of n elements is n elements in the wire's format,
// out of the sender and into the receiver.

#pragma once

#include "horovod_ring/plan.h"
#include "horovod_ring/streams.h"

struct cluster;

struct pair_message {
    struct group_vector vector;
    enum group_verb verb; // of which it is a part
    uint64_t *left;       // the verb's messages that are not complete; borrowed
};

struct pair_line {
    struct pair_message *queue; // message k at k % depth
    uint64_t posted, done;
    // The present message, number `done`:
    struct head head;
    size_t moved;  // bytes of head and payload moved so far
    size_t cast;   // bytes of payload that are or were in `scratch`
    char *scratch; // a piece of a vector in 16 bits
    bool closed;   // the other member has left
};

struct pairs {
    struct streams streams; // STREAMS_ALL
    size_t depth;
    struct pair_line *lines[2]; // by enum direction, then by rank
    uint64_t pending;           // messages that are not complete
    bool listens;               // read from all members, to notice failures
    uint64_t moved_ns;          // when bytes last moved, or work arrived
    uint64_t moves;             // how often bytes have moved
    struct group_stats counted;
};

// Opens lines to all members. At most `depth` messages may be under way.
// `half`: fp32 vectors will travel in 16 bits. All members call it. Returns 0,
// or -1 after fail(); pairs_close() follows in both cases.
int pairs_open(struct pairs *p, const struct streams_ops *ops, const char *name,
               struct cluster *c, const char *iface, size_t depth, bool half);
void pairs_close(struct pairs *p);

// Posts one message to or from member `peer`. *m->left becomes one less when it
// is complete.
void pairs_post(struct pairs *p, enum direction d, int peer,
                const struct pair_message *m);

// Returns a member whose present message counts in *left, or -1.
int pairs_awaited(const struct pairs *p, const uint64_t *left);

// Moves everything that can be moved now. Returns 0, or -1 after fail().
int pairs_advance(struct pairs *p);

// Sets what the next wait of the streams is for: messages on all lines, and
// reports of failures, for which the next pairs_advance() listens.
void pairs_want(struct pairs *p);

// After a failure: tells the other members which rank is at fault. It does not
// tell that rank itself, nor members that have received only a part of a
// message.
void pairs_abort(struct pairs *p);
