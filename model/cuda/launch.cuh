// launch.cuh - starts kernels for the model for which the calling thread works.

#pragma once

#include "device/number.cuh"
#include "model/cuda/kernels_cuda.h"

#include <cuda_runtime.h>

// Calls f with a number of the model's format and the queue for kernels, and
// checks that they have started.
template <typename F> void launch(F f)
{
    const struct cuda_model *now = cuda_current();
    cudaStream_t queue = (cudaStream_t)now->queue;
    by_format(now->format, [=](auto number) { f(number, queue); });
    CU(cudaGetLastError());
}
