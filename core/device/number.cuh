// number.cuh - the number formats in device code: load and store a number,
// choose a format.
//
// Kernels are templates over the type in which a number is stored. They compute
// in fp32. by_format() chooses the type for a dtype once, on the host.

#pragma once

#include "base/half.h"
#include "device/cuda.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

__device__ inline float load(float x)
{
    return x;
}

__device__ inline double load(double x)
{
    return x;
}

__device__ inline float load(__half x)
{
    return __half2float(x);
}

__device__ inline float load(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

// Round to nearest even.
template <typename T> __device__ inline T store(float x);

template <> __device__ inline float store<float>(float x)
{
    return x;
}

template <> __device__ inline __half store<__half>(float x)
{
    return __float2half_rn(x);
}

template <> __device__ inline __nv_bfloat16 store<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

// Four numbers that are loaded and stored at once: 16 bytes of fp32, 8 bytes of
// the 16-bit formats.
template <typename T> struct alignas(4 * sizeof(T)) four {
    T v[4];
};

template <typename T> __device__ inline void load4(float out[4], const T *p)
{
    four<T> x = *reinterpret_cast<const four<T> *>(p);
    for (int i = 0; i < 4; i++)
        out[i] = load(x.v[i]);
}

// Two numbers of 16 bits in one register, rounded by one instruction.
template <typename T> __device__ inline unsigned pack(float low, float high);

template <> __device__ inline unsigned pack<__half>(float low, float high)
{
    __half2 two = __floats2half2_rn(low, high);
    unsigned bits;
    memcpy(&bits, &two, sizeof bits);
    return bits;
}

template <>
__device__ inline unsigned pack<__nv_bfloat16>(float low, float high)
{
    __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    unsigned bits;
    memcpy(&bits, &two, sizeof bits);
    return bits;
}

// Stores four numbers to global memory. It uses an intrinsic, since the
// compiler splits the assignment of a struct into four stores.
template <typename T> __device__ inline void store4(T *p, const float in[4])
{
    __stwb(reinterpret_cast<uint2 *>(p),
           make_uint2(pack<T>(in[0], in[1]), pack<T>(in[2], in[3])));
}

template <> __device__ inline void store4<float>(float *p, const float in[4])
{
    __stwb(reinterpret_cast<float4 *>(p),
           make_float4(in[0], in[1], in[2], in[3]));
}

// Calls f with a number of the type that `format` names.
template <typename F> void by_format(enum dtype format, F f)
{
    switch (format) {
    case DTYPE_F16:
        f(__half());
        break;
    case DTYPE_BF16:
        f(__nv_bfloat16());
        break;
    default:
        f(0.0f);
    }
}

// The number of blocks of `threads` threads for n items, at most the largest
// grid.
inline unsigned blocks_for(size_t n, unsigned threads)
{
    size_t blocks = n ? (n + threads - 1) / threads : 1;
    return (unsigned)(blocks < 0x7fffffff ? blocks : 0x7fffffff);
}

// This thread's number and the number of all threads, for loops over a whole
// vector.
__device__ inline size_t thread_first()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline size_t thread_stride()
{
    return (size_t)gridDim.x * blockDim.x;
}
