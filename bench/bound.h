// bound.h - a lower bound for the time of a training step: the matrix products
// of the fastest library, and the update's memory traffic.

#pragma once

#include "bench/workload.h"

// A product of the step: out (m, n) = a (m, k) b (k, n) for each of `batch`
// matrices, `count` times per step.
struct bound_product {
    const char *name;
    int batch, m, n, k;
    bool ta, tb;   // a is stored (k, m); b is stored (n, k)
    bool out_fp32; // out is fp32, whatever the precision
    int count;
    double share; // of its time that counts: 1, or attention's causal part
};

enum { BOUND_PRODUCTS = 32, BOUND_ROUNDS = 64 };

struct bound_line {
    struct bound_product is;
    const char *call;   // the fastest call of both libraries
    double seconds;     // of all `count` products of a step
    double hot_seconds; // the same, with factors in the cache
    double gflops, hot_gflops;
};

struct bound;

// Prints a line: which kernels OpenBLAS uses, or why OpenBLAS is left out.
void bound_open(struct bound **f, const struct workload_case *c);
void bound_close(struct bound **f);

// Runs everything once more. The times below are medians over all rounds so
// far.
void bound_round(struct bound *f);

// bound_products() returns the seconds of all products of a step, and
// bound_hot() the same with factors in the cache. bound_update() returns the
// seconds of AdamW's memory traffic: those of a simple loop that reads params,
// m, v and the gradient, and writes the first three.
double bound_products(const struct bound *f);
double bound_hot(const struct bound *f);
double bound_update(const struct bound *f);

// The number of products, and the times of product i, from 0.
int bound_nlines(const struct bound *f);
struct bound_line bound_line(const struct bound *f, int i);
