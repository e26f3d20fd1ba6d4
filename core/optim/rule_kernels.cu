// rule_kernels.cu - sum of squares, verdict, and the update in one pass.
//
// It is compiled without fused multiply-add and computes in the order of
// optim.c, so that a GPU's bits are those of the CPU. An update reads p, g and
// the slots and writes p and the slots: for AdamW 28 bytes per element, which
// take all its time, and 2 more for a 16-bit copy of p.

#include "optim/rule_cuda.h"

#include "device/number.cuh"

#include <cuda_runtime.h>

enum { THREADS = 256, PER_THREAD = 4, CHUNK = THREADS * PER_THREAD };

// ---- sum of squares: RULE_LANES threads for each block of RULE_BLOCK elements

enum { AHEAD = 8 }; // loads of a thread at the same time

__global__ void squares_kernel(double *sums, const float *g, size_t n)
{
    unsigned lane = threadIdx.x % RULE_LANES;
    size_t block = thread_first() / RULE_LANES;
    size_t at = block * RULE_BLOCK, end = at + RULE_BLOCK;
    double part = 0;
    if (end > n)
        end = n;
    size_t i = at + lane;
    for (; i + (AHEAD - 1) * RULE_LANES < end; i += AHEAD * RULE_LANES) {
        float x[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            x[k] = g[i + (size_t)k * RULE_LANES];
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            part += (double)x[k] * x[k];
    }
    for (; i < end; i += RULE_LANES)
        part += (double)g[i] * g[i];
    // The partial sums are added from lane 0 on, as on the CPU.
    unsigned first = threadIdx.x % 32 / RULE_LANES * RULE_LANES;
    double sum = 0;
    for (unsigned k = 0; k < RULE_LANES; k++)
        sum += __shfl_sync(0xffffffff, part, (int)(first + k));
    if (lane == 0 && at < n)
        sums[block] = sum;
}

// ---- the verdict: segment_norm(), then optim_clip_scale()
//
// All threads load the sums of blocks. Then one thread for each lane adds the
// sums of its lane, and one thread does the rest.

__global__ void decide_kernel(struct rule_verdict *v, const double *sums,
                              size_t nblocks, float grad_scale, float clip)
{
    __shared__ double next[THREADS];
    static_assert(THREADS % RULE_LANES == 0, "a lane keeps its thread");
    double part = 0;
    for (size_t at = 0; at < nblocks; at += THREADS) {
        size_t left = nblocks - at, some = left < THREADS ? left : THREADS;
        if (threadIdx.x < some)
            next[threadIdx.x] = sums[at + threadIdx.x];
        __syncthreads();
        if (threadIdx.x < RULE_LANES)
            for (size_t k = threadIdx.x; k < some; k += RULE_LANES)
                part += next[k];
        __syncthreads();
    }
    if (threadIdx.x < RULE_LANES)
        next[threadIdx.x] = part;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    double sum = 0;
    for (int k = 0; k < RULE_LANES; k++)
        sum += next[k];
    double scaled = sqrt(sum) * (double)grad_scale;
    v->norm = (float)scaled;
    v->scale = grad_scale;
    if (clip > 0 && scaled > clip)
        v->scale = (float)(grad_scale * (clip / (scaled + 1e-6)));
    v->skip = !isfinite(v->norm);
}

// ---- the update

// The first range that ends after element i.
__device__ uint32_t find_range(const struct optim_range *decay, uint32_t n,
                               size_t i)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (decay[mid].off + decay[mid].n <= i)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct adamw {
    static __device__ void apply(float *p, float *m, float *v, float grad,
                                 float scale, float decay,
                                 const struct optim_rates &r)
    {
        float g = scale * grad;
        float mi = *m + (1.0f - r.beta1) * (g - *m);
        float vi = r.beta2 * *v + (1.0f - r.beta2) * g * g;
        float step = mi * r.correct1 / (sqrtf(vi * r.correct2) + r.eps);
        *m = mi;
        *v = vi;
        *p -= r.lr * (step + decay * *p);
    }
};

struct momentum {
    static __device__ void apply(float *p, float *u, float *, float grad,
                                 float scale, float decay,
                                 const struct optim_rates &r)
    {
        *u = r.momentum * *u + scale * grad;
        *p -= r.lr * (*u + decay * *p);
    }
};

struct plain {
    static __device__ void apply(float *p, float *, float *, float grad,
                                 float scale, float decay,
                                 const struct optim_rates &r)
    {
        *p -= r.lr * (scale * grad + decay * *p);
    }
};

// A block of threads takes a chunk. One thread looks up the first range for the
// chunk, and each thread searches on from there.
template <typename Rule, int SLOTS, typename T>
__global__ void update_kernel(float *p, float *m, float *v, const float *g,
                              T *copy, size_t n, struct optim_rates r,
                              const struct optim_range *decay, uint32_t ndecay,
                              const struct rule_verdict *verdict)
{
    __shared__ uint32_t range;
    if (verdict->skip)
        return;
    float scale = verdict->scale;
    size_t at = (size_t)blockIdx.x * CHUNK;
    if (threadIdx.x == 0)
        range = find_range(decay, ndecay, at);
    __syncthreads();
    uint32_t k = range;
#pragma unroll
    for (int j = 0; j < PER_THREAD; j++) {
        size_t i = at + (size_t)j * THREADS + threadIdx.x;
        if (i >= n)
            return;
        while (k < ndecay && decay[k].off + decay[k].n <= i)
            k++;
        float wd = k < ndecay && decay[k].off <= i ? r.decay : 0;
        float pi = p[i], mi = SLOTS > 0 ? m[i] : 0, vi = SLOTS > 1 ? v[i] : 0;
        Rule::apply(&pi, &mi, &vi, g[i], scale, wd, r);
        p[i] = pi;
        if (SLOTS > 0)
            m[i] = mi;
        if (SLOTS > 1)
            v[i] = vi;
        if (copy)
            copy[i] = store<T>(pi);
    }
}

void rule_cuda_squares(void *queue, double *sums, const float *g, size_t n)
{
    size_t blocks = (n + RULE_BLOCK - 1) / RULE_BLOCK;
    squares_kernel<<<blocks_for(blocks * RULE_LANES, THREADS), THREADS, 0,
                     (cudaStream_t)queue>>>(sums, g, n);
    CU(cudaGetLastError());
}

void rule_cuda_decide(void *queue, struct rule_verdict *v, const double *sums,
                      size_t nblocks, float scale, float clip)
{
    decide_kernel<<<1, THREADS, 0, (cudaStream_t)queue>>>(v, sums, nblocks,
                                                          scale, clip);
    CU(cudaGetLastError());
}

void rule_cuda_update(void *queue, uint32_t kind, float *p, float *const *slots,
                      const float *g, size_t n, struct optim_rates rates,
                      const struct optim_range *decay, uint32_t ndecay,
                      const struct rule_verdict *v,
                      const struct half_copy *copy)
{
    cudaStream_t s = (cudaStream_t)queue;
    unsigned blocks = blocks_for(n, CHUNK);
    float *m = slots[0], *u = slots[1];
    void *to = copy ? copy->at : NULL;
    by_format(copy ? copy->format : DTYPE_F32, [=](auto number) {
        auto *c = (decltype(number) *)to;
        if (kind == OPTIM_ADAMW)
            update_kernel<adamw, 2><<<blocks, THREADS, 0, s>>>(p, m, u, g, c, n,
                                                               rates, decay,
                                                               ndecay, v);
        else if (rates.momentum > 0)
            update_kernel<momentum, 1>
                <<<blocks, THREADS, 0, s>>>(p, m, u, g, c, n, rates, decay,
                                            ndecay, v);
        else
            update_kernel<plain, 0><<<blocks, THREADS, 0, s>>>(p, m, u, g, c, n,
                                                               rates, decay,
                                                               ndecay, v);
    });
    CU(cudaGetLastError());
}
