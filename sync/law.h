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

#endif
