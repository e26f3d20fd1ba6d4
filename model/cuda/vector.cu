// vector.cu - small passes over whole tensors: sums of rows, masks, and
// rounding gradients to the format.

#include "model/cuda/launch.cuh"
#include "model/cuda/mask.cuh"

enum { THREADS = 256, COLUMNS = 32, PHASES = 16, PARTS = 64 };

// Block (x, y) sums COLUMNS columns of every PARTS-th group of PHASES rows.
// Thread (i, j) sums column i of row j of each of these groups; then the PHASES
// sums of a column are added in order.
template <typename T>
__global__ void sum_rows_kernel(float *partial, const T *in, size_t rows, int C)
{
    __shared__ float phase[PHASES][COLUMNS];
    int c = (int)(blockIdx.x * COLUMNS + threadIdx.x);
    float sum = 0;
    size_t step = (size_t)gridDim.y * PHASES;
    for (size_t r = blockIdx.y * PHASES + threadIdx.y; c < C && r < rows;
         r += step)
        sum += load(in[r * C + c]);
    phase[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || c >= C)
        return;
    for (int k = 1; k < PHASES; k++)
        sum += phase[k][threadIdx.x];
    partial[(size_t)blockIdx.y * C + c] = sum;
}

__global__ void add_parts_kernel(float *out, const float *partial, int parts,
                                 int C, bool add)
{
    int c = (int)thread_first();
    if (c >= C)
        return;
    float sum = add ? out[c] : 0;
    for (int p = 0; p < parts; p++)
        sum += partial[(size_t)p * C + c];
    out[c] = sum;
}

template <typename T>
__global__ void mask_rows_kernel(T *out, const T *in, size_t rows, int C,
                                 struct mask mask)
{
    size_t packs = rows * (size_t)C / 4;
    for (size_t i = thread_first(); i < packs; i += thread_stride()) {
        size_t row = i * 4 / C, c = i * 4 % C;
        uint32_t key = mask_row(mask, mask_place(mask, row));
        float x[4];
        load4(x, in + i * 4);
        for (int k = 0; k < 4; k++)
            x[k] *= mask_at(mask, key, (uint32_t)c + k);
        store4(out + i * 4, x);
    }
}

template <typename T>
__global__ void settle_kernel(float *grad, const float *in, size_t n, bool add)
{
    for (size_t i = thread_first(); i < n; i += thread_stride()) {
        float x = load(store<T>(in[i]));
        grad[i] = add ? grad[i] + x : x;
    }
}

static void add_parts(void *queue, float *out, const float *parts, int count,
                      size_t n, bool add)
{
    add_parts_kernel<<<blocks_for(n, THREADS), THREADS, 0,
                       (cudaStream_t)queue>>>(out, parts, count, (int)n, add);
    CU(cudaGetLastError());
}

void cuda_add_parts(float *out, const float *parts, int count, size_t n,
                    bool add)
{
    add_parts(cuda_current()->queue, out, parts, count, n, add);
}

void cuda_sum_rows(void *queue, enum dtype format, float *out, const void *in,
                   size_t rows, int C, bool add, float *partial)
{
    cudaStream_t s = (cudaStream_t)queue;
    dim3 threads(COLUMNS, PHASES);
    dim3 blocks((unsigned)((C + COLUMNS - 1) / COLUMNS), PARTS);
    by_format(format, [=](auto number) {
        sum_rows_kernel<<<blocks, threads, 0, s>>>(partial,
                                                   (const decltype(number) *)in,
                                                   rows, C);
    });
    CU(cudaGetLastError());
    add_parts(queue, out, partial, PARTS, (size_t)C, add);
}

void cuda_mask_rows(void *out, const void *in, size_t rows, int C,
                    const struct mask *mask)
{
    struct mask m = *mask;
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        mask_rows_kernel<<<blocks_for(rows * C / 4, THREADS), THREADS, 0,
                           queue>>>((real *)out, (const real *)in, rows, C, m);
    });
}

void cuda_settle(float *grad, const float *in, size_t n, bool add)
{
    if (n == 0)
        return;
    launch([=](auto number, cudaStream_t queue) {
        settle_kernel<decltype(number)>
            <<<blocks_for(n, THREADS), THREADS, 0, queue>>>(grad, in, n, add);
    });
}
