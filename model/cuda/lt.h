// lt.h - cuBLASLt, loaded when a model opens on a GPU.
//
// The library has half a gigabyte. If it were linked, every run on the CPU
// would need a quarter of a second and 150 MiB more. So it is loaded by name
// when it is needed.

#pragma once

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
