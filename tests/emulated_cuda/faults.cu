// faults.cu - kernels with faults that the emulation must find, and right ones.

#include "tests/emulated_cuda/faults.h"

#include "model/cuda/tensor.cuh"

#include <cuda_runtime.h>

__global__ void neighbours_kernel(int *out, bool up, bool barrier)
{
    __shared__ int seen[FAULT_THREADS];
    int t = (int)threadIdx.x, from = t + (up ? 1 : FAULT_THREADS - 1);
    seen[t] = t;
    if (barrier)
        __syncthreads();
    out[t] = seen[from % FAULT_THREADS];
}

__global__ void copies_kernel(float *out, const float *in, bool wait,
                              bool barrier)
{
    __shared__ alignas(16) float seen[4 * FAULT_THREADS];
    int t = (int)threadIdx.x;
    copy_begin(&seen[4 * t], &in[4 * t], t != 0);
    if (wait)
        copy_wait();
    if (barrier)
        __syncthreads();
    out[t] = seen[4 * ((t + 1) % FAULT_THREADS)];
    __syncthreads();
    if (!wait)
        copy_wait();
}

__global__ void left_copies_kernel(const float *in)
{
    __shared__ alignas(16) float seen[4];
    if (threadIdx.x == 0)
        copy_begin(seen, in, true);
}

__global__ void half_warp_kernel(int *out)
{
    if (threadIdx.x % 32 >= 16)
        return;
    out[threadIdx.x] = __shfl_xor_sync(0xffffffff, (int)threadIdx.x, 1);
}

__global__ void two_places_kernel(int *out)
{
    if (threadIdx.x % 32 < 16)
        __syncthreads();
    else
        out[threadIdx.x] = __shfl_xor_sync(0xffffffff, (int)threadIdx.x, 1);
}

__global__ void outside_kernel(int *out, size_t n)
{
    if (threadIdx.x == 0)
        out[n] = 1;
}

__global__ void shared_kernel(int *out)
{
    extern __shared__ float most[];
    __shared__ int more[32];
    more[threadIdx.x] = 1;
    most[threadIdx.x] = 1;
    out[threadIdx.x] = more[threadIdx.x];
}

void fault_neighbours(void *stream, int *out, bool up, bool barrier)
{
    neighbours_kernel<<<1, FAULT_THREADS, 0, (cudaStream_t)stream>>>(out, up,
                                                                     barrier);
}

void fault_copies(void *stream, float *out, const float *in, bool wait,
                  bool barrier)
{
    copies_kernel<<<1, FAULT_THREADS, 0, (cudaStream_t)stream>>>(out, in, wait,
                                                                 barrier);
}

void fault_left_copies(void *stream, const float *in)
{
    left_copies_kernel<<<1, 32, 0, (cudaStream_t)stream>>>(in);
}

void fault_half_warp(void *stream, int *out)
{
    half_warp_kernel<<<1, FAULT_THREADS, 0, (cudaStream_t)stream>>>(out);
}

void fault_two_places(void *stream, int *out)
{
    two_places_kernel<<<1, FAULT_THREADS, 0, (cudaStream_t)stream>>>(out);
}

void fault_outside(void *stream, int *out, size_t n)
{
    outside_kernel<<<1, FAULT_THREADS, 0, (cudaStream_t)stream>>>(out, n);
}

void fault_shared(void *stream, int *out, size_t bytes)
{
    shared_kernel<<<1, 32, bytes, (cudaStream_t)stream>>>(out);
}
