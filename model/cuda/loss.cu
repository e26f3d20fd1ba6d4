// loss.cu - cross-entropy and its gradient, over a row of logits, in place.
//
//     loss = log(sum e^l) - l[y];   dl = factor (softmax(l) - [j = y])
//
// There is one kernel, and a block computes one row. Its first pass finds the
// maximum and the sum together; its second pass replaces each logit by its
// gradient. A row of 50304 numbers is 100 KB in 16 bits. The second pass goes
// from the end to the start, so that it finds in the cache what the first pass
// has read, and memory is read once.

#include "model/cuda/launch.cuh"
#include "model/cuda/reduce.cuh"

// A thread loads PACKS times four numbers at once.
enum { MAX_THREADS = 1024, MEAN_THREADS = 1024, PACKS = 4 };

// Blocks of MAX_THREADS that a multiprocessor holds. By compute capability it
// runs 1024 threads (7.5), 1536 (8.6 to 8.9, 11.0, 12.x) or 2048 (the others);
// source: CUDA C++ Programming Guide, table of technical specifications. Here
// every capability before 8.0 counts as 1 block.
#if defined(__CUDA_ARCH__) &&                                                  \
    (__CUDA_ARCH__ == 800 || (__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100))
enum { MAX_BLOCKS = 2 };
#else
enum { MAX_BLOCKS = 1 };
#endif

// The maximum of the logits read so far, and the sum of e^(l - max) over them.
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

// Loads four numbers at each of j, j + step, .. that is before `end`.
template <typename T>
__device__ inline void load_packs(float x[PACKS][4], const T *l, int j,
                                  int step, int end)
{
#pragma unroll
    for (int p = 0; p < PACKS; p++)
        if (j + p * step < end) // rows are padded to a multiple of 4 numbers
            load4(x[p], l + j + p * step);
}

template <typename T> __device__ inline struct running look(const T *l, int V)
{
    running r = {-INFINITY, 0};
    int step = (int)blockDim.x * 4;
    for (int j = (int)threadIdx.x * 4; j < V; j += PACKS * step) {
        float x[PACKS][4] = {};
        running some = {-INFINITY, 0};
        load_packs(x, l, j, step, V);
#pragma unroll
        for (int i = 0; i < PACKS * 4; i++) {
            float *one = &x[i / 4][i % 4];
            *one = j + i / 4 * step + i % 4 < V ? *one : -INFINITY;
            some.max = fmaxf(some.max, *one);
        }
        if (some.max == -INFINITY)
            continue;
#pragma unroll
        for (int i = 0; i < PACKS * 4; i++)
            some.sum += __expf(x[i / 4][i % 4] - some.max);
        r = join(r, some);
    }
    return r;
}

// Replaces the logits by their gradient. Each thread writes only numbers that
// no other thread reads.
template <typename T>
__device__ void to_gradient(T *l, int V, int stride, int y, struct running all,
                            float factor)
{
    float scale = factor / all.sum;
    int step = (int)blockDim.x * 4, j = (int)threadIdx.x * 4;
    j += (stride - 1) / (PACKS * step) * (PACKS * step);
    for (; j >= 0; j -= PACKS * step) {
        float x[PACKS][4] = {};
        load_packs(x, l, j, step, V);
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            int first = j + p * step;
            for (int k = 0; k < 4; k++) {
                x[p][k] = __expf(x[p][k] - all.max) * scale;
                if (first + k == y)
                    x[p][k] -= factor;
                if (first + k >= V)
                    x[p][k] = 0;
            }
            if (first < stride)
                store4(l + first, x[p]);
        }
    }
}

// What all threads of the block have read; each of them gets it.
template <typename T>
__device__ inline struct running look_together(const T *l, int V)
{
    __shared__ running scratch[MAX_WARPS];
    unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    running all = warp_join(look(l, V));
    if (lane == 0)
        scratch[warp] = all;
    __syncthreads();
    all = warp_join(lane < blockDim.x / WARP ? scratch[lane]
                                             : running{-INFINITY, 0});
    return all;
}

template <typename T>
__global__ void __launch_bounds__(MAX_THREADS, MAX_BLOCKS)
    loss_kernel(float *loss, T *logits, size_t stride, const int32_t *targets,
                int V, float factor, bool gradient)
{
    T *l = logits + blockIdx.x * stride;
    int y = targets[blockIdx.x];
    float right = load(l[y]);
    running all = look_together(l, V);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = all.max + logf(all.sum) - right;
    if (gradient)
        to_gradient(l, V, (int)stride, y, all, factor);
}

// A slice's part of the loss of a row.
template <typename T>
__global__ void __launch_bounds__(MAX_THREADS, 1)
    parts_kernel(struct loss_part *parts, const T *logits, size_t stride,
                 const int32_t *targets, struct words here)
{
    const T *l = logits + blockIdx.x * stride;
    int y = targets[blockIdx.x] - here.first;
    running all = look_together(l, here.n);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = {all.max, all.sum,
                             y >= 0 && y < here.n ? load(l[y]) : 0};
}

// The loss of a row from the parts of all slices, added in their order, and the
// gradient of this slice's logits.
template <typename T>
__global__ void __launch_bounds__(MAX_THREADS, 1)
    joined_kernel(float *loss, T *logits, size_t stride,
                  const struct loss_part *parts, int slices,
                  const int32_t *targets, struct words here, float factor,
                  bool gradient)
{
    running all = {-INFINITY, 0};
    float right = 0;
    for (int s = 0; s < slices; s++) {
        struct loss_part p = parts[(size_t)s * gridDim.x + blockIdx.x];
        all = join(all, running{p.max, p.sum});
        right += p.right;
    }
    if (threadIdx.x == 0)
        loss[blockIdx.x] = all.max + logf(all.sum) - right;
    if (gradient)
        to_gradient(logits + blockIdx.x * stride, here.n, (int)stride,
                    targets[blockIdx.x] - here.first, all, factor);
}

__global__ void mean_kernel(float *mean, const float *v, size_t n)
{
    __shared__ double scratch[MAX_WARPS];
    double sum = 0;
    for (size_t i = threadIdx.x; i < n; i += MEAN_THREADS)
        sum += v[i];
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0)
        *mean = (float)(sum / (double)n);
}

// Threads of a block that computes a row.
static unsigned threads_for(size_t stride)
{
    size_t packs = (stride / 4 + WARP - 1) / WARP * WARP, most = MAX_THREADS;
    return (unsigned)(packs < most ? packs : most);
}

void cuda_loss_parts(struct loss_part *parts, float *logits, const int32_t *y,
                     struct words here, size_t rows)
{
    const struct cuda_model *now = cuda_current();
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        parts_kernel<<<(unsigned)rows, threads_for(now->stride), 0, queue>>>(
            parts, (const real *)logits, now->stride, y, here);
    });
}

void cuda_loss_joined(float *loss, void *dlogits, float *logits,
                      const struct loss_part *parts, int slices, int slice,
                      const int32_t *y, struct words here, size_t rows,
                      float factor)
{
    const struct cuda_model *now = cuda_current();
    (void)slice;
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        joined_kernel<<<(unsigned)rows, threads_for(now->stride), 0, queue>>>(
            loss, (real *)logits, now->stride, parts, slices, y, here, factor,
            dlogits != NULL);
    });
}

void cuda_loss(float *loss, void *dlogits, float *logits, const int32_t *y,
               size_t rows, int V, float factor)
{
    const struct cuda_model *now = cuda_current();
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        loss_kernel<<<(unsigned)rows, threads_for(now->stride), 0, queue>>>(
            loss, (real *)logits, now->stride, y, V, factor, dlogits != NULL);
    });
}

void cuda_mean(float *mean, const float *v, size_t n)
{
    mean_kernel<<<1, MEAN_THREADS, 0, (cudaStream_t)cuda_current()->queue>>>(
        mean, v, n);
    CU(cudaGetLastError());
}
