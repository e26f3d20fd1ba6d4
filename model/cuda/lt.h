// lt.h - cuBLASLt, loaded when a model opens on a GPU.
//
// The library has half a gigabyte. If it were linked in, every run on the CPU
// would pay a quarter of a second and 150 MiB for it. So it is loaded by name,
// when it is needed.

#ifndef MODEL_CUDA_LT_H
#define MODEL_CUDA_LT_H

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

// 0, or -1 after fail().
int lt_open(struct lt *lt);
void lt_close(struct lt *lt);

#endif
