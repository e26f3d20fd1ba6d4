// cuda_kernels.cu - conversion and addition of vectors in device memory.
//
// The kernels give the same bits as vector.c: one rounding, sums in fp32 (sums
// of doubles in doubles). Neighbouring threads take adjacent elements, so that
// memory is read in whole cache lines.

#include "device/cuda.h"

#include "device/number.cuh"

#include <cuda_runtime.h>

enum { THREADS = 256 };

template <typename To, typename From>
__global__ void cast_kernel(To *dst, const From *src, float scale, size_t n)
{
    for (size_t i = thread_first(); i < n; i += thread_stride())
        dst[i] = store<To>(load(src[i]) * scale);
}

template <typename Sum, typename T>
__global__ void add_kernel(Sum *dst, const T *src, size_t n)
{
    for (size_t i = thread_first(); i < n; i += thread_stride())
        dst[i] += load(src[i]);
}

template <typename T>
__global__ void add_into_wire_kernel(T *wire, const float *acc, size_t n)
{
    for (size_t i = thread_first(); i < n; i += thread_stride())
        wire[i] = store<T>(acc[i] + load(wire[i]));
}

void cuda_cast(struct device *d, enum device_queue q, void *dst, enum dtype to,
               const void *src, enum dtype from, float scale, size_t n)
{
    cudaStream_t s = (cudaStream_t)d->ops->handle(d, q);
    if (n == 0 || (dst == src && to == from && scale == 1.0f))
        return;
    by_format(to, [=](auto t) {
        by_format(from, [=](auto f) {
            typedef decltype(t) To;
            typedef decltype(f) From;
            cast_kernel<<<blocks_for(n, THREADS), THREADS, 0, s>>>(
                (To *)dst, (const From *)src, scale, n);
        });
    });
    CU(cudaGetLastError());
}

void cuda_add(struct device *d, enum device_queue q, void *dst, const void *src,
              enum dtype from, size_t n)
{
    cudaStream_t s = (cudaStream_t)d->ops->handle(d, q);
    if (n == 0)
        return;
    if (from == DTYPE_F64)
        add_kernel<<<blocks_for(n, THREADS), THREADS, 0, s>>>(
            (double *)dst, (const double *)src, n);
    else
        by_format(from, [=](auto f) {
            add_kernel<<<blocks_for(n, THREADS), THREADS, 0, s>>>(
                (float *)dst, (const decltype(f) *)src, n);
        });
    CU(cudaGetLastError());
}

void cuda_add_into_wire(struct device *d, enum device_queue q, void *wire,
                        enum dtype type, const float *acc, size_t n)
{
    cudaStream_t s = (cudaStream_t)d->ops->handle(d, q);
    if (n == 0)
        return;
    by_format(type, [=](auto t) {
        add_into_wire_kernel<<<blocks_for(n, THREADS), THREADS, 0, s>>>(
            (decltype(t) *)wire, acc, n);
    });
    CU(cudaGetLastError());
}
