// routine.h - cuBLASLt's description of a matrix product, and the algorithms
// that it offers for the product.

#pragma once

#include "model/cuda/lt.h"
#include "model/cuda/product_cuda.h"

// What all products of a model have in common.
struct routine_maker {
    struct lt lt;
    cublasLtHandle_t handle;
    enum dtype format;
    bool tf32;
    size_t workspace; // bytes of scratch that an algorithm may use
};

struct routine {
    struct product_job shape; // its pointers do not matter
    int target;                    // multiprocessors that it may use; 0: all
    bool fused;                    // cuBLASLt computes the epilogue
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, out;
    cublasLtMatmulAlgo_t algo;
};

// Creates the descriptors of r->shape and fills in at most `most` algorithms
// for it, the most promising first. `fused`: cuBLASLt computes the epilogue.
// Returns the number of algorithms. If it is 0, there is nothing to destroy;
// else the caller calls routine_destroy().
int routine_make(const struct routine_maker *m, struct routine *r, bool fused,
                 cublasLtMatmulAlgo_t *algos, int most);
void routine_destroy(const struct routine_maker *m, const struct routine *r);

// Sets the epilogue's pointers to those of the job.
void routine_point(const struct routine_maker *m, const struct routine *r,
                   const struct product_job *j);
