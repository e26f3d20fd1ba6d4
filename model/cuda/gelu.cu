// gelu.cu - GELU in its tanh form, and the additions of a bias.
//
// If cuBLASLt has such an epilogue for the format, that is used instead.

#include "model/cuda/kernels_cuda.h"

#include "device/number.cuh"

#include <cuda_runtime.h>

enum { THREADS = 256 };

#define GELU_2ROOT 1.59576912f // 2 sqrt(2/pi)
#define GELU_CUBE  0.044715f

// 1 + tanh u = 2 / (1 + e^-2u): the logistic function of 2u.
__device__ inline float logistic_2u(float x)
{
    return 1 / (1 + __expf(-GELU_2ROOT * (x + GELU_CUBE * x * x * x)));
}

__device__ inline float gelu_of(float x)
{
    return x * logistic_2u(x);
}

__device__ inline float gelu_slope(float x)
{
    float s = logistic_2u(x);
    return s + x * s * (1 - s) * GELU_2ROOT * (1 + 3 * GELU_CUBE * x * x);
}

template <typename T>
__global__ void gelu_backward_kernel(T *d, const T *in, size_t packs)
{
    for (size_t i = thread_first(); i < packs; i += thread_stride()) {
        float x[4], g[4];
        load4(x, in + i * 4);
        load4(g, d + i * 4);
        for (int k = 0; k < 4; k++)
            g[k] *= gelu_slope(x[k]);
        store4(d + i * 4, g);
    }
}

template <typename T>
__global__ void bias_kernel(T *out, T *pre, const T *bias, size_t packs, int C)
{
    for (size_t i = thread_first(); i < packs; i += thread_stride()) {
        float x[4], b[4];
        load4(x, out + i * 4);
        load4(b, bias + i * 4 % C);
        for (int k = 0; k < 4; k++)
            x[k] += b[k];
        if (pre) {
            store4(pre + i * 4, x);
            for (int k = 0; k < 4; k++)
                x[k] = gelu_of(load(store<T>(x[k])));
        }
        store4(out + i * 4, x);
    }
}

void cuda_gelu_backward(void *queue, enum dtype format, void *d, const void *in,
                        size_t n)
{
    by_format(format, [=](auto number) {
        typedef decltype(number) real;
        gelu_backward_kernel<<<blocks_for(n / 4, THREADS), THREADS, 0,
                               (cudaStream_t)queue>>>((real *)d,
                                                      (const real *)in, n / 4);
    });
    CU(cudaGetLastError());
}

void cuda_bias(void *queue, enum dtype format, void *out, void *pre,
               const void *bias, size_t rows, int C)
{
    size_t packs = rows * (size_t)C / 4;
    by_format(format, [=](auto number) {
        typedef decltype(number) real;
        bias_kernel<<<blocks_for(packs, THREADS), THREADS, 0,
                      (cudaStream_t)queue>>>((real *)out, (real *)pre,
                                             (const real *)bias, packs, C);
    });
    CU(cudaGetLastError());
}
