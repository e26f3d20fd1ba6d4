// group.h - exchanges of vectors between members of a group: the collective
// operations that the field knows, send and recv. They are called verbs here.
//
// A vector of n elements has `size` chunks, and chunk c belongs to member c
// (group_chunk_of()):
//
//     all_reduce      every element := the sum over all members
//     reduce_scatter  a member's own chunk := its sum; other chunks are spoilt
//     all_gather      chunk c := member c's chunk c, on every member
//     broadcast       every element := the root's
//     reduce          the root's elements := the sum; on other members they are
//                     spoilt
//     send, recv      n elements from one member to another
//     all_to_all      chunk c := the chunk that member c gives this member, in
//                     a second vector
//
// Every verb but all_to_all works in place. Every verb returns at once with a
// ticket; group_await() waits for it. All members open their groups in the same
// order, and post the verbs of a group in the same order. Tickets of one group
// complete in order. Groups do not wait for each other.
//
// Over TCP, shared memory and MPI all posted sends and receives move at the
// same time, in any order. Over NCCL the verbs of all groups share one queue of
// the device: a send delays all verbs posted after it until the other member
// receives. So over NCCL, members that all send before they receive wait for
// each other until the deadline; of two members one must receive first.
//
// A carrier decides how bytes travel. It is one `const struct group_ops`: our
// own ring (horovod_ring/) or a library (allreduce/).

#pragma once

#include "base/half.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cluster;
struct device;
struct spans;

enum group_verb {
    GROUP_ALL_REDUCE,
    GROUP_REDUCE_SCATTER,
    GROUP_ALL_GATHER,
    GROUP_BROADCAST,
    GROUP_REDUCE,
    GROUP_SEND,
    GROUP_RECV,
    GROUP_ALL_TO_ALL,
    GROUP_VERBS
};

// A vector, and the number format in which it travels. Sums take fp32, with
// fp32 or 16 bits on the wire, or doubles. Other verbs take any type, bytes
// too. If fp32 travels in 16 bits, all members end with the rounded numbers;
// only the sender of a send keeps its own. An all_to_all has wire == type.
struct group_vector {
    void *data; // host memory, or the device's if the carrier is on_device
    size_t n;   // elements
    enum dtype type, wire;
    float scale; // for sums over a 16-bit wire: each member's numbers are
                 // multiplied by it while they are cast; else 1
    const size_t *lengths; // of the chunks, in elements, `size` of them whose
                           // sum is n; borrowed until the ticket is complete.
                           // NULL: as even as possible (group_chunk())
    bool awaited; // the caller awaits this ticket next, so that waking the
                  // thread would be useless
};

struct group_op {
    enum group_verb verb;
    struct group_vector vector;
    int peer; // broadcast, reduce: the root; send, recv: the other member
    struct group_vector given; // all_to_all: what this member gives
};

// Payload and headers that this member sent and received since open, in bytes;
// and the payload of each verb.
struct group_stats {
    uint64_t bytes_out, bytes_in;
    uint64_t head_out, head_in;
    uint64_t out[GROUP_VERBS], in[GROUP_VERBS];
};

// The arguments of group_open(). They are borrowed until group_close().
struct group_job {
    const char *name;        // in errors and spans: "ring", "dp"
    struct cluster *cluster; // of the members: rank, size, deadline
    struct device *dev;      // where vectors are, for carriers on the device
    struct spans *spans;     // where exchanges are recorded; may be NULL
    size_t grain;            // chunks begin at multiples of it; 0: ops->grain
    size_t largest;          // elements of the largest vector with wire != type
    size_t depth;            // most tickets that are open at once
    bool thread;             // run a thread for a carrier that can use one
    bool pairs;              // send, recv and all_to_all will be used
    bool star;               // send and recv only, from and to member 0
    bool messages;           // most verbs are such: then a thread is of use in
                             // shared memory, too
    // Settings of the carriers.
    size_t slice_bytes; // of the slices that travel as a pipeline; 0: 256 KiB
    const char *iface;  // network interface to listen on; "" for loopback
    int algorithm;      // enum algorithm: of the library (config/settings.h)
    int ctas;           // most thread blocks of a collective on GPUs; 0: any
};

struct group;

// A carrier is one constant of this type. Functions return 0, or -1 after
// fail(). Only one thread at a time calls begin, advance, wait or abort.
struct group_ops {
    const char *name; // "tcp", "shm", "mpi", "nccl"
    bool library;     // a library's own collectives
    bool on_device;   // works on the device's memory and its queues
    bool threaded;    // a thread of group.c may move data while others compute;
                      // who waits may spin
    size_t state_size;
    size_t grain; // vectors and chunks are faster at multiples of it; 0: 1
    // Whether it can join these members: 1, 0 with the reason in `why`, or -1
    // after fail(). All members call it and get the same answer. NULL: always.
    int (*is_supported)(const struct group_job *job, char why[128]);
    // May clear g->job.thread, if a thread cannot be used here.
    int (*open)(struct group *g);
    // Optional: group_share().
    int (*share)(struct group *g, void *data, size_t bytes);
    // Accepts one verb. May move data; must not block.
    int (*begin)(struct group *g, const struct group_op *op);
    // Moves the data that can be moved now. *done becomes the number of verbs
    // that are complete.
    int (*advance)(struct group *g, uint64_t *done);
    // Called while a verb is begun and not complete. Sleeps until more data can
    // be moved or wake() is called. For g->spin_ns after the last move it may
    // spin instead. It is an error if group_waited(g->since_ns, ..) passes the
    // deadline.
    int (*wait)(struct group *g);
    void (*wake)(struct group *g); // optional; from any thread
    // Optional: later work of the device's compute queue waits for all verbs
    // begun so far.
    void (*follow)(struct group *g);
    void (*abort)(struct group *g); // optional: tells the others of a failure
    void (*close)(struct group *g); // must accept zeroed state
};

struct progress; // group.c: the thread, the posted and the done verbs

struct group {
    const struct group_ops *ops;
    struct group_job job;
    const char *name;
    int rank, size;
    struct group_stats moved; // the carrier counts here
    struct group_stats stats; // at the last await
    struct progress *progress;
    // For ops->wait(): since when the caller waits, and how long it spins;
    // UINT64_MAX and 0 while it computes.
    uint64_t since_ns, spin_ns;
    void *state; // ops->state_size zeroed bytes; group.c frees it
};

// Whether a carrier can join these members: 1, 0 with the reason in `why`, or
// -1 after fail(). All members must call it. If they are a part of a job
// (cluster/split.h), the members of all parts must call it, and all get the
// same answer.
int group_is_supported(const struct group_ops *ops, const struct group_job *job,
                       char why[128]);

// Opens a group. All members must call it. NULL after fail(). group_close()
// takes NULL, and aborts the verbs under way.
struct group *group_open(const struct group_ops *ops,
                         const struct group_job *job);
void group_close(struct group **g);

// Announces that the members will exchange parts of a vector: each member has
// one of its own, `data` of `bytes` bytes, which must outlive the group. A part
// begins at the same offset on all members. If members can map each other's
// memory, exchanges of these parts become faster. The call is never necessary,
// but if one member makes it, all must. 0, or -1 after fail().
int group_share(struct group *g, void *data, size_t bytes);

// The verbs. Each returns at once: 0, with the ticket in *ticket (which may be
// NULL), or -1 after fail(). *v is copied. The vector's memory belongs to the
// group until the ticket is complete: await it before another verb on the same
// memory.
int group_all_reduce(struct group *g, const struct group_vector *v,
                     uint64_t *ticket);
int group_reduce_scatter(struct group *g, const struct group_vector *v,
                         uint64_t *ticket);
int group_all_gather(struct group *g, const struct group_vector *v,
                     uint64_t *ticket);
int group_broadcast(struct group *g, const struct group_vector *v, int root,
                    uint64_t *ticket);
int group_reduce(struct group *g, const struct group_vector *v, int root,
                 uint64_t *ticket);
int group_send(struct group *g, const struct group_vector *v, int to,
               uint64_t *ticket);
int group_recv(struct group *g, const struct group_vector *v, int from,
               uint64_t *ticket);
// The same for a verb that is a value. *op is copied.
int group_post(struct group *g, const struct group_op *op, uint64_t *ticket);

// Chunk r of *given goes to member r, and chunk r of *taken comes from it. So
// on each two members a and b, chunk b of a's *given has as many elements as
// chunk a of b's *taken; any may be empty. The two vectors have one type, and
// must not overlap. A member copies its own chunk.
int group_all_to_all(struct group *g, const struct group_vector *given,
                     const struct group_vector *taken, uint64_t *ticket);

// The calling thread waits until a ticket and all before it are complete. 0, or
// -1 after fail() that names the member that is late or gone.
int group_await(struct group *g, uint64_t ticket);

// The device's compute queue waits for a ticket, and the call returns at once.
// With a carrier that works on host memory it is group_await(). Over NCCL the
// host may run ahead of the device: if a caller only follows and never awaits,
// `depth` tickets can be open, and a CHECK stops the program at the next verb.
int group_follow(struct group *g, uint64_t ticket);

// How long a caller that waits since `since_ns` has waited in vain, if data
// last moved at moved_ns. 0 while it computes: then nobody misses the data.
uint64_t group_waited(uint64_t since_ns, uint64_t moved_ns);

// Whether a verb is a send or a receive; whether it needs job.pairs; whether it
// computes a sum.
static inline bool group_is_pair(enum group_verb v)
{
    return v == GROUP_SEND || v == GROUP_RECV;
}
static inline bool group_needs_pairs(enum group_verb v)
{
    return group_is_pair(v) || v == GROUP_ALL_TO_ALL;
}
static inline bool group_is_sum(enum group_verb v)
{
    return v == GROUP_ALL_REDUCE || v == GROUP_REDUCE_SCATTER ||
           v == GROUP_REDUCE;
}

// group_count() adds bytes of payload of verb v to the counters.
// group_stats_add() adds the counters `more`, and group_stats_less() subtracts
// the counters `less`.
static inline void group_count(struct group_stats *s, enum group_verb v,
                               uint64_t out, uint64_t in)
{
    s->bytes_out += out;
    s->bytes_in += in;
    s->out[v] += out;
    s->in[v] += in;
}
void group_stats_add(struct group_stats *s, const struct group_stats *more);
void group_stats_less(struct group_stats *s, const struct group_stats *less);

// A vector of n elements that travels in its own type: of any type, of fp32
// numbers, of bytes.
struct group_vector group_plain(void *data, size_t n, enum dtype type);
struct group_vector group_floats(float *data, size_t n);
struct group_vector group_bytes(void *data, size_t n);

// Whether fp32 numbers travel in 16 bits; the address of element `off`.
static inline bool group_casts(const struct group_vector *v)
{
    return v->wire != v->type;
}
static inline void *group_at(const struct group_vector *v, size_t off)
{
    return (char *)v->data + off * dtype_bytes(v->type);
}

// Chunk c of a vector of n elements, for a group of `size` members. Chunks are
// whole grains (of `grain` elements), as even as possible, the larger ones
// first. A chunk may be empty.
struct group_chunk {
    size_t off, n; // elements
};
struct group_chunk group_chunk(size_t n, size_t grain, int size, int c);

// Chunk c of a vector, by its own lengths if it has any; and the number of
// elements of its longest chunk.
struct group_chunk group_chunk_of(const struct group_vector *v, size_t grain,
                                  int size, int c);
size_t group_longest(const struct group_vector *v, size_t grain, int size);

// The elements that an all_to_all sends to other members (`out`), or receives
// from them: all but this member's own chunk.
size_t group_exchanged(const struct group_op *op, size_t grain, int rank,
                       int size, bool out);

// A power of two by which members' numbers are multiplied before a sum in 16
// bits. It is at most 1/size, so the sum cannot overflow if the mean does not.
// It loses no bits that a division by size would keep. 1 if the wire is not a
// 16-bit one.
float group_scale(enum dtype wire, int size);

const char *group_verb_name(enum group_verb v); // "all_reduce"
