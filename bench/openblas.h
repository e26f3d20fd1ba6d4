// openblas.h - OpenBLAS's matrix product, if that library is installed. The
// lower bound of a step uses the fastest library that is installed.

#pragma once

#include <stdbool.h>

struct openblas {
    void *library;
    // cblas_sgemm(): order, factors transposed or not, m, n, k, alpha, a and
    // its leading dimension, b, beta, out
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int,
                  const float *, int, float, float *, int);
    const char *core; // the processor whose kernels it uses
};

// Loads the library for this many threads. Returns 0, or -1 after fail() if
// there is none. The environment variable OPENBLAS_CORETYPE can choose the
// kernels. Without it, the kernels are those of the instruction set that oneDNN
// uses, because OpenBLAS 0.3.21 takes the kernels of a Pentium 4 on a processor
// that it does not know. openblas_close() may also be called if openblas_open()
// has failed.
int openblas_open(struct openblas *b, int threads);
void openblas_close(struct openblas *b);

// out (m, n) = left (m, k) right (k, n), row-major and contiguous. With `ta`,
// left is stored (k, m). With `tb`, right is stored (n, k).
void openblas_run(const struct openblas *b, bool ta, bool tb, int m, int n,
                  int k, const float *left, const float *right, float *out);
