// op_case.h - shared by the tests of kernels: tensors, random numbers and
// tolerances.

#pragma once

#include "model/kernels.h"

enum { MAX = 1 << 16 };

// A tensor in three formats: double, fp32, and the kernels' format.
struct tensor3 {
    double d[MAX];
    float f[MAX];
    unsigned char raw[MAX * 4];
};

extern const struct kernels *k; // under test
extern double tolerance;        // relative; it depends on the format
extern struct tensor3 in, in2, weight, bias, out, dout, extra;
extern const struct mask no_mask, some_mask; // rates 0, 3/8

// Runs `test` with k and tolerance set for each table of kernels that this
// processor can run. Prints which tables it cannot run.
void for_all_tables(void (*test)(void));

// Fills t with n random numbers in (-size, size), rounded to the format.
void draw(struct tensor3 *t, int n, uint64_t key, double size);

// Asserts that the root mean square of got - want is at most `tolerance` times
// that of want, and that no single number is far off. near_raw(): `got` has
// numbers of the kernels' format.
void near(const char *what, const float *got, const double *want, int n);
void near_raw(const char *what, const void *got, const double *want, int n);

// Returns the derivatives of sum(dout * op(x)) by x[0..n), from central
// differences. op reads x and writes n_out numbers of out.d. The result is
// valid until the next call.
const double *differences(void (*op)(void), double *x, int n, int n_out);
