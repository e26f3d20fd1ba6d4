// law.h - what an exchange should take: t = hops alpha + share S / B.
//
// S is the gradient's bytes as they travel, `share` how often the time of
// crossing the busiest link passes (where both directions work at once, it is
// that of the one which carries more), `hops` how many messages go one after
// the other. A link is what they need of the network; law_fit() finds
// it from measured times.

#ifndef SYNC_LAW_H
#define SYNC_LAW_H

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

// For n workers. The ring: 2(n-1) messages of S/n. Servers beside the workers,
// one each: the ring's bytes in two messages. k servers on hosts of their own:
// nS/k into each and out of it, both ways at once, but never less than the S of
// a worker's own link; `held`: nothing leaves before all has come, as where the
// servers update, so it takes twice as long. Worker 0 as the owner: (n-1)S into
// its link and out of it, always held; without `held` what crosses in one
// direction.
struct law law_ring(int n);
struct law law_shards(int n);
struct law law_servers(int n, int k, bool held);
struct law law_owner(int n, bool held);

// The law of a backend's traffic.
struct law_case {
    int workers;
    int servers; // on hosts of their own; 0: beside the workers, unless the
                 // backend has one server only
    bool held;   // servers, or the owner, answer when all has come
    enum algorithm algorithm; // of the library
    int every; // steps from one exchange to the next: the law is a step's, on
               // the average; 0 or 1: of each
};
struct law law_of(const struct backend *b, const struct law_case *c);

// An all-reduce by halving and doubling (Rabenseifner), by doubling alone, and
// up and down a binomial tree: allreduce/algorithm.h.
struct law law_halving(int n);
struct law law_doubling(int n);
struct law law_tree(int n);

// By the setting algorithm= of the backend allreduce.
struct law law_allreduce(enum algorithm a, int n);

double law_seconds(const struct law *law, const struct link *link,
                   double bytes);

// The link that explains measured times best, by least squares of relative
// errors. Leaves *link alone with fewer than two different sizes.
void law_fit(const struct law *law, const double *bytes, const double *seconds,
             int n, struct link *link);

// ---- bytes of a step around a ring, exactly

struct bucket;

// What travels in a step: elements of each unit of the cut, whose ends are
// moved up to multiples of the grain (zero/shards.h), len(c) of chunk c; m
// micro-batches, the norm is n/4096 doubles.
//
//                  reduce_scatter   all_gather               all_reduce
//     replicas                                               2n - len(r)
//                                                              - len(r+1)
//     shard=1      n - len(r)       n - len(r+1)             the norm
//     shard=2      m times that     n - len(r+1)             the norm
//     shard=3      m times that     law_gathers() times that the norm
//
// That is out of rank r; what comes in is what rank r-1 sends.
struct law_step {
    int world, micro;
    bool shards;              // else replicas
    enum shard_level kind;    // with shards
    const struct bucket *cut; // the last of the vector first; 2, 3: its blocks
    int count;
    size_t grain;                  // of units and chunks, at least 1
    size_t sum_bytes, param_bytes; // of a gradient, a parameter on its way
};

// Payload of `rank`, by verb.
void law_step_bytes(const struct law_step *s, int rank,
                    struct group_stats *out);

// The mean over all ranks of what goes out, by verb; returns their sum.
double law_step_mean(const struct law_step *s, double out[GROUP_VERBS]);

// Messages that follow each other: those of the passes over the vector.
double law_step_hops(const struct law_step *s);

// With shard=3: how often a step of m micro-batches gathers block b of n for
// forward, and again for backward. Two buffers take all blocks but the first
// and the last in turn (zero/blocks.h), so each pass finds two of them there.
int law_gathers(int b, int n, int micro, bool backward);

#endif
