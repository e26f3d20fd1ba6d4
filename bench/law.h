// law.h - what a step should take by the law: t = hops alpha + share S / B.

#ifndef BENCH_LAW_H
#define BENCH_LAW_H

#include <stddef.h>

struct link {
    double alpha_s;     // latency of a message
    double bytes_per_s; // of a link, each way
};

struct law {
    double hops;  // messages one after the other
    double share; // of the gradient's bytes that pass the busiest link
};

// For n workers: 2(n-1) messages of S/n; one server's link: nS each way, both
// ways at once; a server beside each worker: the ring's bytes in two messages.
struct law law_ring(int n);
struct law law_server(int n);
struct law law_shards(int n);

double law_seconds(const struct law *law, const struct link *link,
                   double bytes);

// The link that explains measured times best, by least squares of relative
// errors. Leaves *link alone with fewer than two different sizes.
void law_fit(const struct law *law, const double *bytes, const double *seconds,
             int n, struct link *link);

#endif
