// op_case.h - what tests of kernels share: tensors, random numbers, tolerances.

#ifndef TESTS_OP_CASE_H
#define TESTS_OP_CASE_H

#include "model/cpu/kernels.h"

enum { MAX = 1 << 16 };

// A tensor in three dresses: the format's numbers, fp32 and double.
struct tensor3 {
    double d[MAX];
    float f[MAX];
    unsigned char raw[MAX * 4];
};

extern const struct kernels *k; // under test
extern double tolerance;        // relative, of the format
extern struct tensor3 in, in2, weight, bias, out, dout, extra;
extern const struct mask no_mask, some_mask; // rates 0, 3/8

// Run `test` with k and tolerance set to each table that this processor runs;
// it prints those that it does not.
void for_all_tables(void (*test)(void));

// Random numbers in (-size, size), rounded to the format.
void draw(struct tensor3 *t, int n, uint64_t key, double size);

// Root mean square of the difference within the format's rounding of the root
// mean square; and no single number far off. near_raw(): of the format.
void near(const char *what, const float *got, const double *want, int n);
void near_raw(const char *what, const void *got, const double *want, int n);

// d sum(dout * op(x)) / dx[i] for x[0..n), by central differences; op reads x
// and writes n_out numbers of out.d. Until the next call.
const double *differences(void (*op)(void), double *x, int n, int n_out);

#endif
