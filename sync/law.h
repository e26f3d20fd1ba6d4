// law.h - predicts how long an exchange takes: t = hops alpha + share S / B.
//
// S is the gradient's size in bytes, as it travels. `share` is how often these
// S bytes cross the busiest link; if both directions work at once, only the
// direction that carries more counts. `hops` is the number of messages that
// follow each other. alpha and B describe the network (struct link); law_fit()
// finds them from measured times.

#pragma once

#include "config/settings.h"
#include "group/group.h"

#include <stdbool.h>

struct link {
    double alpha_s;     // latency of a message
    double bytes_per_s; // of payload, each way
};

struct backend;

struct law {
    double hops, share;
};

// Laws for n workers.
//
// law_ring: 2(n-1) messages of S/n.
// law_shards: one server beside each worker; as many bytes as the ring, in two
// messages.
// law_servers: k servers on hosts of their own. nS/k bytes go into each server
// and as many out of it, both at once. With at least n servers, a worker's own
// link is the busiest one: S bytes each way. held: the servers defer their
// replies until all gradients have come, as they do if they update; then the
// exchange takes twice as long.
// law_owner: worker 0 is the owner; (n-1)S goes into its link, then as much out
// of it. Its replies are always deferred; held = false counts one direction
// only.
struct law law_ring(int n);
struct law law_shards(int n);
struct law law_servers(int n, int k, bool held);
struct law law_owner(int n, bool held);

// law_rounds: in each round every worker sends a message and receives one, both
// at once; config/backends.h says how many rounds and how long a message.
struct backend_rounds;
struct law law_rounds(const struct backend_rounds *r, int n);

// The law of a backend's traffic.
struct law_case {
    int workers;
    int servers; // on hosts of their own; 0: one beside each worker. Ignored
                 // if the backend has one server only, on its own host
    bool held;   // servers, or the owner, answer after all gradients have come
    enum algorithm algorithm; // of the library
    int every; // steps from one exchange to the next; the law is the average
               // for one step. 0 or 1: every step exchanges
    const struct law *squeezed; // squeeze_law(); NULL: gradients travel whole
};
struct law law_of(const struct backend *b, const struct law_case *c);

// By the setting algorithm= of the backend allreduce: around a ring, by halving
// and doubling (Rabenseifner), by doubling alone, or up and down a binomial
// tree. See allreduce/algorithm.h.
struct law law_allreduce(enum algorithm a, int n);

// Seconds that an exchange of `bytes` bytes (S) should take on `link`.
double law_seconds(const struct law *law, const struct link *link,
                   double bytes);

// Sets *link to the one that explains n measured exchanges best, by least
// squares of relative errors: bytes[i] took seconds[i]. With fewer than two
// different sizes *link stays as it is.
void law_fit(const struct law *law, const double *bytes, const double *seconds,
             int n, struct link *link);

// ---- bytes of a step around a ring, exactly

struct bucket;

// The elements that rank r sends in one step, for each unit of n elements. A
// unit is a range of the vector that is exchanged as one; its ends are moved up
// to multiples of the grain (zero/shards.h). len(c) is the length of chunk c,
// and m the number of micro-batches. "the norm" is an all-reduce of n/4096
// doubles.
//
//                  reduce_scatter   all_gather               all_reduce
//     replicas                                               2n - len(r)
//                                                              - len(r+1)
//     shard=1      n - len(r)       n - len(r+1)             the norm
//      squeeze=    (all_to_all)     n - len(r+1)             the norm
//     shard=2      m times that     n - len(r+1)             the norm
//     shard=3      m times that     law_gathers() times that the norm
//
// Rank r receives what rank r-1 sends. With squeeze=, with every shard=, an
// all_to_all of messages takes the place of all reduce_scatters: world - 1
// messages, all at once.
struct law_step {
    int world, micro;
    bool shards;              // else replicas
    enum shard_level kind;    // with shards
    const struct bucket *cut; // the units, last first; shard=2, 3: the blocks
    int count;
    size_t grain;                  // of units and chunks, at least 1
    size_t sum_bytes, param_bytes; // on the wire, for each element
    size_t messages; // with shards and squeeze=: bytes from a worker to each
                     // other in a step; else 0
};

// *out: payload that `rank` sends and receives in a step, in bytes, by verb.
void law_step_bytes(const struct law_step *s, int rank,
                    struct group_stats *out);

// out[v]: bytes that a rank sends in a step by verb v, the mean over all ranks.
// Returns the sum over all verbs.
double law_step_mean(const struct law_step *s, double out[GROUP_VERBS]);

// How many messages of a step follow each other: world - 1 for each pass of the
// whole vector around the ring. An all-reduce takes two passes.
double law_step_hops(const struct law_step *s);

// With shard=3: how often a step of `micro` micro-batches gathers block b of n
// for forward (backward = false) or for backward. All blocks but the first and
// the last share two buffers (zero/blocks.h). When a pass begins, they still
// hold the last two blocks of the pass before, which are not gathered again.
int law_gathers(int b, int n, int micro, bool backward);
