// pairs.h - messages from one member to another (send, recv and all_to_all),
// and their order among a group's verbs.
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
//
// Messages and collectives move independently. The group only needs to know how
// many verbs are complete, counted from the first without a gap.

#pragma once

#include "horovod_ring/plan.h"
#include "horovod_ring/streams.h"

// A verb of the group.
struct ticket {
    struct group_op op;
    uint64_t number; // of a collective: among the collectives
    uint64_t left;   // of another verb: messages that are not complete
};

struct pair_message {
    struct group_vector vector;
    struct ticket *verb; // of which it is a part
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
    size_t depth, grain;
    struct pair_line *lines[2]; // by enum direction, then by rank
    uint64_t pending;           // messages that are not complete
    bool listens;               // read from all members, to notice failures
    uint64_t moved_ns;          // when bytes last moved, or work arrived
    uint64_t moves;             // how often bytes have moved
    struct group_stats counted;

    struct ticket *verbs; // verb k at k % depth; NULL: the job has no pairs
    uint64_t posted, done;
    uint64_t vectors; // collectives posted so far
};

// Opens lines over `ops` to all members of a group, if its job has pairs. All
// members call it. Returns 0, or -1 after fail(). pairs_close() accepts zeroed
// pairs.
int pairs_open(struct pairs *p, const struct streams_ops *ops,
               const struct group *g);
void pairs_close(struct pairs *p);

// Adds one verb. True if its messages are posted here; false if it is a
// collective.
bool pairs_post(struct pairs *p, const struct group_op *op);

// Moves all messages that can be moved now. `vectors` is how many collectives
// are complete. *done becomes the number of complete verbs, counted from the
// first without a gap. Returns 0, or -1 after fail().
int pairs_advance(struct pairs *p, uint64_t vectors, uint64_t *done);

// If the first verb that is not complete is one of messages, returns a member
// that it waits for, and sets *verb. Else returns -1.
int pairs_awaited(const struct pairs *p, enum group_verb *verb);

// Sets what the next wait of the streams is for: messages on all lines, and
// reports of failures, for which the next pairs_advance() listens.
void pairs_want(struct pairs *p);

// After a failure: tells the other members which rank is at fault. It does not
// tell that rank itself, nor members that have received only a part of a
// message.
void pairs_abort(struct pairs *p);
