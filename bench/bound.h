// bound.h - a lower bound for the time of a training step: the matrix products
// of the fastest library, and the update's memory traffic.

#pragma once

#include "bench/workload.h"

enum { BOUND_PRODUCTS = 32, BOUND_ROUNDS = 64 };

// A product of the step: out (m, n) = a (m, k) b (k, n) for each of `batch`
// matrices, `count` times per step.
struct bound_product {
    const char *name;
    int m, n, k, count, batch;
    double share;  // of its time that counts: 1, or attention's causal part
    bool ta, tb;   // a is stored (k, m); b is stored (n, k)
    bool out_fp32; // out is fp32, whatever the precision
};

struct bound_line {
    struct bound_product is;
    const char *call;   // the fastest call of both libraries
    double seconds;     // of all `count` products of a step
    double hot_seconds; // the same, with factors in the cache
    double gflops, hot_gflops;
};

// Medians over all rounds.
struct bound_times {
    double products, hot; // seconds of all products, as in struct bound_line
    double update; // seconds of AdamW's memory traffic: those of a simple loop
                   // that reads params, m, v and the gradient, and writes the
                   // first three
    struct bound_line lines[BOUND_PRODUCTS];
    int nlines;
};

struct bound;

// Prints a line: which kernels OpenBLAS uses, or why OpenBLAS is left out.
void bound_open(struct bound **f, const struct workload_case *c);
void bound_close(struct bound **f);

// Runs everything once more.
void bound_round(struct bound *f);

struct bound_times bound_read(const struct bound *f);
