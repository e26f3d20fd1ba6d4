// openblas.h - OpenBLAS's product, where that library is installed: the lower
// bound of a step is by the best library at hand.

#ifndef BENCH_OPENBLAS_H
#define BENCH_OPENBLAS_H

#include <stdbool.h>

struct openblas {
    void *library;
    // cblas_sgemm(): order, factors transposed or not, m, n, k, alpha, a and
    // its leading dimension, b, beta, out
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int,
                  const float *, int, float, float *, int);
    const char *core; // whose kernels it has taken
};

// Load the library for so many threads; -1 after fail() where there is none.
// Unless OPENBLAS_CORETYPE says which, its kernels are those of the instruction
// set that oneDNN uses: 0.3.21 takes a Pentium 4's on processors that it does
// not know.
int openblas_open(struct openblas *b, int threads);
void openblas_close(struct openblas *b); // also one that was never opened

// out (m, n) = a b, row-major and contiguous; a is stored (k, m) with ta, b is
// stored (n, k) with tb.
void openblas_run(const struct openblas *b, bool ta, bool tb, int m, int n,
                  int k, const float *left, const float *right, float *out);

#endif
