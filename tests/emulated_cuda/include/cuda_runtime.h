// cuda_runtime.h - the parts of CUDA that a kernel uses, for the host's C++
// compiler.
//
// translate.py has turned launches into emulated::launch(), shared variables
// into emulated::shared, and inline assembly into emulated::ptx.

#pragma once

#include "tests/emulated_cuda/block.h"
#include "tests/emulated_cuda/ptx.h"
#include <cuda_runtime_api.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __expf expf

struct alignas(8) float2 {
    float x, y;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(8) uint2 {
    unsigned x, y;
};

struct alignas(16) int4 {
    int x, y, z, w;
};

inline float2 make_float2(float x, float y)
{
    return {x, y};
}

inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

inline int4 make_int4(int x, int y, int z, int w)
{
    return {x, y, z, w};
}

template <typename T> void __stwb(T *p, T x)
{
    *p = x;
}

inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

inline uint32_t __float_as_uint(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

[[noreturn]] inline void __trap()
{
    emulated::stop("__trap()");
}

inline void __syncthreads()
{
    emulated::meet_block();
}

// The value of lane `from` of the warp. All 32 lanes take part.
template <typename T>
T emulated_shuffle(const char *what, unsigned mask, T x, int from)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "one register or two");
    uint64_t *words = emulated::self.exchange->words;
    memcpy(&words[emulated::self.lane], &x, sizeof x);
    emulated::meet_warp(what, mask);
    memcpy(&x, &words[from % 32], sizeof x);
    return x;
}

template <typename T> T __shfl_sync(unsigned mask, T x, int from)
{
    return emulated_shuffle("__shfl_sync", mask, x, from);
}

template <typename T> T __shfl_xor_sync(unsigned mask, T x, int with)
{
    return emulated_shuffle("__shfl_xor_sync", mask, x,
                            (int)emulated::self.lane ^ with);
}

// A pointer into shared memory as the 32-bit address that instructions take.
inline size_t __cvta_generic_to_shared(const void *p)
{
    return emulated::shared_address(p);
}
