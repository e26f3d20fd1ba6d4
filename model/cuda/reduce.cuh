// reduce.cuh - sums over the threads of a warp and of a block.

#pragma once

enum { WARP = 32, MAX_WARPS = 32 };

// Every lane gets the sum over the warp.
template <typename T> __device__ inline T warp_sum(T x)
{
    for (int step = WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

// Every thread gets the sum over the block, whose size is a multiple of WARP.
// All threads of the block call this. `scratch` is shared memory for MAX_WARPS
// numbers.
template <typename T> __device__ inline T block_sum(T x, T *scratch)
{
    unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    x = warp_sum(x);
    __syncthreads(); // an earlier call may still read `scratch`
    if (lane == 0)
        scratch[warp] = x;
    __syncthreads();
    return warp_sum(lane < blockDim.x / WARP ? scratch[lane] : T(0));
}
