// routine.h - cuBLASLt, its description of a matrix product, and the algorithms
// that it offers for the product.
//
// The library has half a gigabyte. If it were linked, every run on the CPU
// would need a quarter of a second and 150 MiB more. So it is loaded by name
// when a model opens on a GPU.

#pragma once

#include "model/cuda/product_cuda.h"

#include <cublasLt.h>

#define LT_FUNCTIONS(F)                                                        \
    F(Create)                                                                  \
    F(Destroy)                                                                 \
    F(GetStatusString)                                                         \
    F(Matmul)                                                                  \
    F(MatmulAlgoGetHeuristic)                                                  \
    F(MatmulDescCreate)                                                        \
    F(MatmulDescDestroy)                                                       \
    F(MatmulDescSetAttribute)                                                  \
    F(MatmulPreferenceCreate)                                                  \
    F(MatmulPreferenceDestroy)                                                 \
    F(MatmulPreferenceSetAttribute)                                            \
    F(MatrixLayoutCreate)                                                      \
    F(MatrixLayoutDestroy)

#define LT_MEMBER(name) __typeof__(cublasLt##name) *name;

// lt.Matmul is cublasLtMatmul, and so on.
struct lt {
    void *library;
    LT_FUNCTIONS(LT_MEMBER)
};

// lt_open() loads the library and finds its functions. Returns 0, or -1 after
// fail(); call lt_close() in both cases.
int lt_open(struct lt *lt);
void lt_close(struct lt *lt);

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
    int target;               // multiprocessors that it may use; 0: all
    bool fused;               // cuBLASLt computes the epilogue
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, out;
    cublasLtMatmulAlgo_t algo;
    cublasLtMatmulAlgo_t plain; // the fastest without an epilogue
    bool has_plain;
    struct routine *next; // of another shape
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
