// pairs.h - messages from one member to another: send, recv and all_to_all.
//
// Each member has two lines to each other member, one out and one in. A line is
// a queue of messages. A message is a head of 16 bytes and the vector, sent
// from its own memory:
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

#ifndef HOROVOD_RING_PAIRS_H
#define HOROVOD_RING_PAIRS_H

#include "horovod_ring/plan.h"

#include <sys/types.h>
#include <sys/uio.h>

struct cluster;
struct pairs;

enum pair_kind {
    PAIR_MESSAGE = 0x50414952, // "PAIR"
    PAIR_ABORT                 // the sender gives up because of rank `number`
};

struct pair_head {
    uint32_t kind;   // enum pair_kind
    uint32_t number; // of the message in its line; or the rank at fault
    uint64_t bytes;  // length of the payload after the head
};

struct pair_message {
    struct group_vector vector;
    enum group_verb verb; // of which it is a part
    uint64_t *left;       // the verb's messages that are not complete; borrowed
};

struct pair_line {
    struct pair_message *queue; // message k at k % depth
    uint64_t posted, done;
    // The present message, number `done`:
    struct pair_head head;
    size_t moved;  // bytes of head and payload moved so far
    size_t cast;   // bytes of payload that are or were in `scratch`
    char *scratch; // a piece of a vector in 16 bits
    bool closed;   // the other member has left
};

// Streams of bytes to all other members. None blocks.
struct pairs_ops {
    size_t state_size;
    int (*open)(struct pairs *p, struct cluster *c, const char *iface);
    // Move what can be moved now. Returns how many bytes moved, 0 if none, or
    // -1 after fail() if the other member is gone.
    ssize_t (*send)(struct pairs *p, int to, const struct iovec *v, int n);
    ssize_t (*recv)(struct pairs *p, int from, void *at, size_t bytes);
    void (*close)(struct pairs *p); // must accept zeroed state
};

struct pairs {
    const struct pairs_ops *ops;
    const char *name;
    int rank, world;
    const int *ranks; // borrowed: the members' ranks in the job, for error
                      // texts; if NULL, they are the members' numbers
    size_t depth;
    struct pair_line *lines[2]; // by enum direction, then by rank
    uint64_t pending;           // messages that are not complete
    bool listens;               // read from all members, to notice failures
    uint64_t moved_ns;          // when bytes last moved, or work arrived
    uint64_t moves;             // how often bytes have moved
    struct group_stats counted;
    int culprit; // after a failure: the rank at fault, or -1
    void *state;
};

// Opens lines to all members. At most `depth` messages may be under way.
// `half`: fp32 vectors will travel in 16 bits. All members call it. Returns 0,
// or -1 after fail(); pairs_close() follows in both cases.
int pairs_open(struct pairs *p, const struct pairs_ops *ops, const char *name,
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

// Whether the line to or from `rank` has bytes to send, or waits for bytes.
bool pairs_wants(const struct pairs *p, enum direction d, int rank);

// After a failure: tells the other members which rank is at fault. It does not
// tell that rank itself, nor members that have received only a part of a
// message.
void pairs_abort(struct pairs *p);

// pairs_tcp has a TCP connection for each pair. pairs_shm uses shared memory.
extern const struct pairs_ops pairs_tcp, pairs_shm;

// pairs_tcp: returns a descriptor that is readable when bytes can move, or -1
// after fail(). The pairs own it.
int pairs_tcp_watch(struct pairs *p);

// pairs_shm: whether bytes can move now.
bool pairs_shm_can_move(const struct pairs *p);

#endif
