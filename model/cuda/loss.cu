// loss.cu - cross-entropy and its gradient, over a row of logits, in place.
//
//     loss = log(sum e^l) - l[y];   dl = factor (softmax(l) - [j = y])
//
// One kernel: a block takes a row, finds maximum and sum together in a first
// look, and in a second turns each logit into its gradient where it lies. A
// 16-bit gradient takes the first half of its row's bytes: it overwrites only
// what every thread has read, because a chunk is read whole, then written.

#include "model/cuda/kernels.h"

#include "device/number.cuh"
#include "model/cuda/reduce.cuh"

#include <cuda_runtime.h>

enum { THREADS = 512, CHUNK = THREADS * 4, MEAN_THREADS = 1024 };

// The sum of e^(l - max) over what was seen so far.
struct running {
    float max, sum;
};

__device__ inline struct running join(struct running a, struct running b)
{
    float max = fmaxf(a.max, b.max);
    if (max == -INFINITY)
        return running{max, 0};
    float sum = a.sum * __expf(a.max - max) + b.sum * __expf(b.max - max);
    return running{max, sum};
}

__device__ inline struct running warp_join(struct running r)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        running other = {__shfl_xor_sync(0xffffffff, r.max, step),
                         __shfl_xor_sync(0xffffffff, r.sum, step)};
        r = join(r, other);
    }
    return r;
}

__device__ inline struct running look(const float *l, int V)
{
    running r = {-INFINITY, 0};
    for (int j = (int)threadIdx.x * 4; j < V; j += CHUNK) {
        float x[4];
        load4(x, l + j); // rows are padded to whole packs
        for (int k = 0; k < 4; k++)
            x[k] = j + k < V ? x[k] : -INFINITY;
        running four = {fmaxf(fmaxf(x[0], x[1]), fmaxf(x[2], x[3])), 0};
        for (int k = 0; k < 4 && four.max > -INFINITY; k++)
            four.sum += __expf(x[k] - four.max);
        r = join(r, four);
    }
    return r;
}

template <typename T>
__device__ void turn(float *l, int V, int stride, int y, struct running all,
                     float factor)
{
    T *d = reinterpret_cast<T *>(l);
    float scale = factor / all.sum;
    for (int base = 0; base < stride; base += CHUNK) {
        int j = base + (int)threadIdx.x * 4;
        float x[4] = {0, 0, 0, 0};
        if (j < V)
            load4(x, l + j);
        __syncthreads();
        for (int k = 0; k < 4; k++) {
            x[k] = __expf(x[k] - all.max) * scale;
            if (j + k == y)
                x[k] -= factor;
            if (j + k >= V)
                x[k] = 0;
        }
        if (j < stride)
            store4(d + j, x);
    }
}

template <typename T>
__global__ void loss_kernel(float *loss, float *logits, size_t stride,
                            const int32_t *targets, int V, float factor,
                            bool gradient)
{
    __shared__ running room[MAX_WARPS];
    float *l = logits + blockIdx.x * stride;
    int y = targets[blockIdx.x];
    float right = l[y];
    unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    running all = warp_join(look(l, V));
    if (lane == 0)
        room[warp] = all;
    __syncthreads();
    all = warp_join(lane < THREADS / WARP ? room[lane] : running{-INFINITY, 0});
    if (threadIdx.x == 0)
        loss[blockIdx.x] = all.max + logf(all.sum) - right;
    if (gradient)
        turn<T>(l, V, (int)stride, y, all, factor);
}

__global__ void mean_kernel(float *mean, const float *v, size_t n)
{
    __shared__ double room[MAX_WARPS];
    double sum = 0;
    for (size_t i = threadIdx.x; i < n; i += MEAN_THREADS)
        sum += v[i];
    sum = block_sum(sum, room);
    if (threadIdx.x == 0)
        *mean = (float)(sum / (double)n);
}

void cuda_loss(void *queue, enum dtype format, float *loss, float *logits,
               size_t stride, const int32_t *y, size_t rows, int V,
               float factor, bool gradient)
{
    by_format(format, [=](auto number) {
        typedef decltype(number) real;
        loss_kernel<real><<<(unsigned)rows, THREADS, 0, (cudaStream_t)queue>>>(
            loss, logits, stride, y, V, factor, gradient);
    });
    CU(cudaGetLastError());
}

void cuda_mean(void *queue, float *mean, const float *v, size_t n)
{
    mean_kernel<<<1, MEAN_THREADS, 0, (cudaStream_t)queue>>>(mean, v, n);
    CU(cudaGetLastError());
}
