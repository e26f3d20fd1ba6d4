// floor.h - the least time that a step could take with the products of the
// fastest library.

#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "bench/subject.h"

// A product of the step: batch times out (m, n) = a b, `count` times a step.
struct floor_product {
    const char *name;
    int batch, m, n, k;
    bool ta, tb;   // a is stored (k, m); b is stored (n, k)
    bool out_fp32; // out is float, whatever the precision
    int count;
    double share; // of the square that causality leaves
};

enum { FLOOR_PRODUCTS = 32, FLOOR_ROUNDS = 64 };

struct floor_line {
    struct floor_product is;
    const char *call;   // the fastest of both libraries
    double seconds;     // a step, all of its count
    double hot_seconds; // with factors in the cache
    double gflops, hot_gflops;
};

struct floor;

// Prints a line: OpenBLAS's kernels, or why it is left out.
void floor_open(struct floor **f, const struct subject_case *c);
void floor_close(struct floor **f);

// Run everything once more; floor_seconds() is over all rounds so far.
void floor_round(struct floor *f);

// A step's products, and AdamW's bytes (params, m, v and the gradient read, the
// first three written) at the bandwidth of such streams of that length.
double floor_products(const struct floor *f);
double floor_hot(const struct floor *f); // products, factors in the cache
double floor_update(const struct floor *f);

int floor_nlines(const struct floor *f);
struct floor_line floor_line(const struct floor *f, int i);

#endif
