// group.h - members that exchange vectors, by the verbs that the field knows.
//
// A vector of n elements has `size` chunks, and chunk c belongs to member c
// (group_chunk()):
//
//     all_reduce      every element := the sum over all members
//     reduce_scatter  a member's own chunk := its sum; the others are spoilt
//     all_gather      chunk c := member c's chunk c, on every member
//     broadcast       every element := the root's
//     reduce          the root's elements := the sum; the others' are spoilt
//     send, recv      n elements from one member to another
//
// Every verb works in place and returns at once with a ticket; group_await()
// waits for it. All members open their groups, and post the verbs of a group,
// in one order. Tickets of one group complete in order; groups do not wait for
// each other.
//
// Over TCP, shared memory and MPI all posted sends and receives move at once,
// in any order. Over NCCL the verbs of all groups share one queue of the
// device: a send holds up what is posted after it until the other member
// receives. There members that all send before they receive wait for each other
// until the deadline; of two members one must receive first.
//
// How bytes travel is the business of a carrier, one `const struct group_ops`:
// our own ring (horovod_ring/) or a library (allreduce/).

#ifndef GROUP_GROUP_H
#define GROUP_GROUP_H

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
    GROUP_VERBS
};

// A vector, and the number format in which it travels. Sums take fp32, with
// fp32 or 16 bits on the wire, or doubles. Other verbs take any type; fp32 may
// travel in 16 bits, and then all members end with the rounded numbers (but the
// sender of a send, which keeps its own).
struct group_vector {
    void *data; // where the carrier works: host memory, or the device's
    size_t n;   // elements
    enum dtype type, wire;
    float scale;  // of sums in a 16-bit wire: each member's numbers are
                  // multiplied by it while they are cast; 1 elsewhere
    bool awaited; // the caller awaits this ticket next: no thread need wake
};

struct group_op {
    enum group_verb verb;
    struct group_vector vector;
    int peer; // broadcast, reduce: the root; send, recv: the other member
};

// Payload and headers of this member since open, in bytes; and the payload of
// each verb.
struct group_stats {
    uint64_t bytes_out, bytes_in;
    uint64_t head_out, head_in;
    uint64_t out[GROUP_VERBS], in[GROUP_VERBS];
};

// What a group is opened with. Borrowed until group_close().
struct group_job {
    const char *name;        // in errors and spans: "ring", "dp"
    struct cluster *cluster; // of the members: rank, size, deadline
    struct device *dev;      // where vectors are, for carriers on the device
    struct spans *spans;     // where exchanges are recorded; may be NULL
    size_t grain;            // chunks begin at multiples of it; 0: ops->grain
    size_t largest;          // elements of the largest vector with wire != type
    size_t depth;            // tickets that may be open at once
    bool thread;             // serve a carrier that wants one with a thread
    bool pairs;              // send and recv will be used
    // Settings of the carriers.
    size_t slice_bytes; // pieces that are pipelined; 0: 256 KiB
    const char *iface;  // network interface to listen on; "" for loopback
    int algorithm;      // enum algorithm: of the library (config/settings.h)
    int ctas;           // thread blocks of a collective on GPUs; 0: any
};

struct group;

// A carrier is one constant of this type. Functions return 0, or -1 after
// fail(). Of begin, advance, wait and abort only one thread at a time is
// inside.
struct group_ops {
    const char *name; // "tcp", "shm", "mpi", "nccl"
    bool library;     // a library's own collectives
    bool on_device;   // works on the device's memory and its queues
    bool threaded;    // a thread of group.c may move data while others compute
    size_t state_size;
    size_t grain; // vectors and chunks that begin at multiples are faster; 0: 1
    // Can it join these members? 1, 0 with the reason in `why`, or -1 after
    // fail(). All members call it and get the same answer. NULL: always.
    int (*is_supported)(const struct group_job *job, char why[128]);
    // May clear g->job.thread, where a thread cannot be used here.
    int (*open)(struct group *g);
    // Optional: all members will exchange parts of this vector of theirs.
    int (*share)(struct group *g, void *data, size_t bytes);
    // Take one verb in. May move data; must not block.
    int (*begin)(struct group *g, const struct group_op *op);
    // Move what can be moved now. *done counts verbs that are complete.
    int (*advance)(struct group *g, uint64_t *done);
    // With something begun that is not complete: sleep until more can be moved
    // or wake() was called, at most until the deadline, which is an error. Spin
    // instead within spin_ns of the last move.
    int (*wait)(struct group *g, uint64_t spin_ns);
    void (*wake)(struct group *g); // optional; from any thread
    // Optional: what is asked of the device's compute queue from now on waits
    // for all that was begun.
    int (*follow)(struct group *g);
    void (*abort)(struct group *g); // optional: a failure; tell the others
    void (*close)(struct group *g); // must accept zeroed state
};

struct progress; // group.c: who moves data, and what is complete

struct group {
    const struct group_ops *ops;
    struct group_job job;
    const char *name;
    int rank, size;
    struct group_stats moved; // the carrier counts here
    struct group_stats stats; // as of the last await
    struct progress *progress;
    void *state; // ops->state_size zeroed bytes; group.c frees it
};

// Whether a carrier can join these members: 1, 0 with the reason in `why`, or
// -1 after fail(). A call of all members; where they are a part of a job
// (cluster/split.h), of all parts, which get the same answer.
int group_is_supported(const struct group_ops *ops, const struct group_job *job,
                       char why[128]);

// A call of all members. NULL after fail(). Close takes NULL, and ends what is
// under way.
struct group *group_open(const struct group_ops *ops,
                         const struct group_job *job);
void group_close(struct group **g);

// All members will exchange parts of their own vectors `data` of `bytes` bytes,
// which outlive the group; a part is at the same place in all of them. Makes
// exchanges of these parts faster where members can map each other's memory;
// never needed. A call of all members. 0, or -1 after fail().
int group_share(struct group *g, void *data, size_t bytes);

// The verbs. Each returns at once: 0, and the ticket in *ticket (may be NULL),
// or -1 after fail(). The vector must stay as it is, and its memory is the
// group's, until the ticket is complete: await it before another verb on the
// same memory.
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

// The host waits until a ticket (and all before it) is complete. 0, or -1 after
// fail() that names the member that is late or gone.
int group_await(struct group *g, uint64_t ticket);

// The device's compute queue waits for a ticket; the call returns at once. With
// a carrier that works on host memory the host waits. Over NCCL the host may
// run ahead of the device: a caller that only follows and never awaits can come
// to have `depth` tickets open, and the next verb is stopped by a CHECK.
int group_follow(struct group *g, uint64_t ticket);

// Verbs between two members; verbs that add. The others copy.
static inline bool group_is_pair(enum group_verb v)
{
    return v == GROUP_SEND || v == GROUP_RECV;
}
static inline bool group_is_sum(enum group_verb v)
{
    return v == GROUP_ALL_REDUCE || v == GROUP_REDUCE_SCATTER ||
           v == GROUP_REDUCE;
}

// Count payload of a verb; add what another has counted, or take it off.
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

// fp32 numbers that travel as they are.
struct group_vector group_floats(float *data, size_t n);

// Whether fp32 travels in 16 bits; where element `off` is.
static inline bool group_casts(const struct group_vector *v)
{
    return v->wire != v->type;
}
static inline void *group_at(const struct group_vector *v, size_t off)
{
    return (char *)v->data + off * dtype_bytes(v->type);
}

// Chunk c of a vector of n elements: whole grains, as even as possible, the
// larger ones first. May be empty.
struct group_chunk {
    size_t off, n; // elements
};
struct group_chunk group_chunk(size_t n, size_t grain, int size, int c);

// A power of two by which members' numbers are multiplied before a sum in 16
// bits: at most 1/size, so that the sum cannot overflow where the mean does
// not, and no bits are lost that a division by size would not lose. 1 where
// the wire is not of 16 bits.
float group_scale(enum dtype wire, int size);

const char *group_verb_name(enum group_verb v); // "all_reduce"

#endif
