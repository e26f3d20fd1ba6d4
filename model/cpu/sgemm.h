// sgemm.h - the library's product of fp32 matrices: oneDNN's, or OpenBLAS's on
// 64-bit ARM, where oneDNN has only reference code (a product of 96 x 96 x 96
// takes 6.2 times the instructions: docs/machines.md).

#pragma once

#include "base/base.h"

#include <stdbool.h>

#if defined(LOCKSTEP_OPENBLAS)
#include <cblas.h>
#else
#include <dnnl.h>
#endif

// The library's own threads, if it has some, stay out of the way. Call it once,
// before the first product.
static inline void sgemm_one_thread(void)
{
#if defined(LOCKSTEP_OPENBLAS)
    openblas_set_num_threads(1);
#endif
}

// out (m, n) = left (m, k) right (k, n), or out += .. with `add`. All are
// row-major. With `ta`, left is stored (k, m). With `tb`, right is stored
// (n, k). lda, ldb and ldc are the distances between stored rows. The calling
// thread computes it alone, within an OpenMP region of the caller.
static inline void sgemm(bool ta, bool tb, int m, int n, int k,
                         const float *left, int lda, const float *right,
                         int ldb, bool add, float *out, int ldc)
{
#if defined(LOCKSTEP_OPENBLAS)
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                tb ? CblasTrans : CblasNoTrans, m, n, k, 1, left, lda, right,
                ldb, add ? 1 : 0, out, ldc);
#else
    // It fails because of a defect here (a wrong shape), or because there is no
    // memory in the middle of a step. A caller can mend neither.
    CHECK(dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, left, lda,
                     right, ldb, add ? 1 : 0, out, ldc) == dnnl_success);
#endif
}
