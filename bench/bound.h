// bound.h - the least time that a step could take with the products of the
// fastest library.

#ifndef BENCH_BOUND_H
#define BENCH_BOUND_H

#include "bench/workload.h"

// A product of the step: batch times out (m, n) = a b, `count` times a step.
struct bound_product {
    const char *name;
    int batch, m, n, k;
    bool ta, tb;   // a is stored (k, m); b is stored (n, k)
    bool out_fp32; // out is float, whatever the precision
    int count;
    double share; // of the square that causality leaves
};

enum { FLOOR_PRODUCTS = 32, FLOOR_ROUNDS = 64 };

struct bound_line {
    struct bound_product is;
    const char *call;   // the fastest of both libraries
    double seconds;     // a step, all of its count
    double hot_seconds; // with factors in the cache
    double gflops, hot_gflops;
};

struct bound;

// Prints a line: OpenBLAS's kernels, or why it is left out.
void bound_open(struct bound **f, const struct workload_case *c);
void bound_close(struct bound **f);

// Run everything once more; bound_seconds() is over all rounds so far.
void bound_round(struct bound *f);

// A step's products, and AdamW's bytes (params, m, v and the gradient read, the
// first three written) at the bandwidth of such streams of that length.
double bound_products(const struct bound *f);
double bound_hot(const struct bound *f); // products, factors in the cache
double bound_update(const struct bound *f);

int bound_nlines(const struct bound *f);
struct bound_line bound_line(const struct bound *f, int i);

#endif
