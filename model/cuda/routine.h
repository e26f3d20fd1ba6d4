// routine.h - a matrix product as cuBLASLt wants it described, and the
// algorithms that it offers for it.

#ifndef MODEL_CUDA_ROUTINE_H
#define MODEL_CUDA_ROUTINE_H

#include "model/cuda/lt.h"
#include "model/cuda/product_cuda.h"

// What all products of a model have in common.
struct routine_maker {
    struct lt lt;
    cublasLtHandle_t handle;
    enum dtype format;
    bool tf32;
    size_t workspace; // bytes an algorithm may use
};

struct routine {
    struct cuda_product_job shape; // without pointers that matter
    int target; // multiprocessors that it may be made for; 0: all
    bool fused; // the epilogue is cuBLASLt's
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, out;
    cublasLtMatmulAlgo_t algo;
};

// Describe r->shape, whose epilogue is cuBLASLt's own (`fused`) or is to
// follow, and fill in at most `most` algorithms for it, the most promising
// first. Returns how many; with 0 nothing is left to destroy.
int routine_make(const struct routine_maker *m, struct routine *r, bool fused,
                 cublasLtMatmulAlgo_t *algos, int most);
void routine_destroy(const struct routine_maker *m, const struct routine *r);

// Name the pointers of the epilogue.
void routine_point(const struct routine_maker *m, const struct routine *r,
                   const struct cuda_product_job *j);

#endif
