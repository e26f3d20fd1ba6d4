// streams.h - streams of bytes between this member and chosen other members.
//
//     link 0   out  [head|payload][head|payload]..    to link 0's member
//              in   [head|payload]..                  from it
//     link 1   ..
//
// A link is two streams, one in each direction; none of them blocks. The ring
// has a link to its LEFT and one to its RIGHT neighbour, which are the same
// member in a world of two. Sends and receives have a link to every member. A
// stream carries heads, each with its payload after it. Both ends divide their
// data into pieces at the same places. The caller repeats a call with the rest
// of a piece until all of it has moved.
//
// The links are TCP connections (streams_tcp), buffers in shared memory
// (streams_shm), or simulated (ring_virtual.c, simulate/group_simulated.c).
//
// A member that fails sends HEAD_ABORT with the rank at fault on its links, so
// that all members name the same rank.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct cluster;

enum head_kind {
    HEAD_SLICE = 0x5247, // "RG": a slice of the ring
    HEAD_MESSAGE,        // a message of send, recv or all_to_all
    HEAD_STUCK,          // the sender waits for member `number`
    HEAD_ABORT,          // the sender gave up because of member `number`
};

struct head {
    uint16_t kind;
    uint16_t message; // of a slice: the message of its verb
    uint32_t number;  // of a slice's verb, or of a message in its line; or a
                      // member
    uint64_t bytes;   // length of the payload after the head
};

// What a caller waits for on a link: bytes to come in, room to send, or a
// report of a failure, though no bytes are expected.
enum { STREAMS_IN = 1, STREAMS_OUT = 2, STREAMS_HEAR = 4 };

struct streams_link {
    int member;
    bool calls;     // this member opens the connection, the other accepts it
    unsigned wants; // what the next wait() waits for
};

// Which members are joined. STREAMS_RING: link LEFT and link RIGHT.
// STREAMS_ALL: link r to member r; the link to itself has no streams.
enum streams_who { STREAMS_RING, STREAMS_ALL };
enum { LEFT, RIGHT };

// The arguments of streams_open(). They are borrowed.
struct streams_config {
    const char *name;  // begins errors
    const char *iface; // tcp: interface to listen on; "" for loopback
    enum streams_who who;
    bool star; // only links of member 0 are used
};

struct streams {
    const struct streams_ops *ops;
    const char *name;
    int rank, world;
    const int *ranks; // borrowed: the members' ranks in the job, for error
                      // texts; if NULL, they are the members' numbers
    enum streams_who who;
    int n;
    struct streams_link *links;
    struct streams *beside; // wait() also waits for what is wanted there, if
                            // it is not NULL
    int culprit;            // after a failure: the member at fault, or -1
    void *state;
};

struct streams_ops {
    size_t state_size;
    bool hears_few; // listen only to members to which something is on its way
    // Connect all links, within the cluster's deadline.
    int (*open)(struct streams *p, struct cluster *c,
                const struct streams_config *config);
    // Move what can be moved now. Return how many bytes moved, 0 if none, or -1
    // after fail() if that member is lost.
    ssize_t (*send)(struct streams *p, int link, const struct iovec *v, int n);
    ssize_t (*recv)(struct streams *p, int link, void *at, size_t bytes);
    // Sleep until one of the wants can be served, wake() is called, or
    // timeout_ms is over. Returns 0, or -1 after fail(). Over shared memory
    // there is neither: counters.h waits.
    int (*wait)(struct streams *p, int timeout_ms);
    void (*wake)(struct streams *p);  // from any thread; only TCP's has it
    void (*close)(struct streams *p); // must accept zeroed state
};

extern const struct streams_ops streams_tcp, streams_shm;

// Opens links; all members call it. Returns 0, or -1 after fail().
// streams_close() follows in both cases; it accepts zeroed streams.
int streams_open(struct streams *p, const struct streams_ops *ops,
                 struct cluster *c, const struct streams_config *config);
void streams_close(struct streams *p);

// streams_shm: whether one of the wants can be served now.
bool streams_shm_can_move(const struct streams *p);

// The rank in the whole job, by which error messages name a member.
int streams_rank(const struct streams *p, int member);

// Failures; each sets the culprit and returns -1 after fail().
// streams_late: nothing has come from `member` for timeout_s, in `what`.
// streams_check: 0 if the head that came on a link is of kind `due`, or is a
// HEAD_STUCK where slices are due; -1 if the sender gave up, or for any other
// bytes.
int streams_late(struct streams *p, int member, double timeout_s,
                 const char *what);
int streams_check(struct streams *p, int link, const struct head *h,
                  enum head_kind due);

// After a failure: tells the member of a link who is at fault, if it is not
// that member. Errors are ignored: nobody is left to report them to.
void streams_abort(struct streams *p, int link);
