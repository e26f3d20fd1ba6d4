// norm.cu - the residual addition and the LayerNorm after it, in one pass.
//
//     sum = res + mask(branch);  out = (sum - mean) * rstd * weight + bias
//
// Forward: a warp computes one row. Backward: a warp computes several rows, and
// a lane the same columns of each of them, so that the lane can keep its sums
// for weight and bias in registers. A row of more than WARP_CHANNELS channels
// needs more registers than a lane has, so a block computes it. The sums of
// warps and blocks are added in order. There are no atomics, and every run has
// the same bits.

#include "model/cuda/launch.cuh"
#include "model/cuda/mask.cuh"
#include "model/cuda/reduce.cuh"

#include <type_traits>

enum {
    THREADS = 256,
    ROWS_AT_ONCE = THREADS / WARP,
    // Warps in a block of norm_rows_kernel. Two such blocks use all registers
    // of a multiprocessor.
    ROWS_WARPS = 6,
    ROWS_THREADS = ROWS_WARPS * WARP,
    WARP_CHANNELS = 8 * WARP * 4
};

#define NORM_EPS 1e-5f

// sum = res + mask(branch) for four numbers. Before, x is res; after, x is sum
// as it was rounded.
template <typename T>
__device__ inline void add_branch(float x[4], T *sum, const T *branch, int c,
                                  uint32_t key, const struct mask &mask)
{
    float b[4];
    load4(b, branch + c);
    for (int k = 0; k < 4; k++) {
        if (mask.threshold)
            b[k] *= mask_at(mask, key, (uint32_t)c + k);
        x[k] = load(store<T>(x[k] + b[k]));
    }
    store4(sum + c, x);
}

template <typename T>
__global__ void norm_kernel(T *sum, T *out, float *mean, float *rstd,
                            const T *res, const T *branch, const T *weight,
                            const T *bias, size_t rows, int C, struct mask mask)
{
    size_t row = thread_first() / WARP;
    int lane = (int)(threadIdx.x % WARP);
    if (row >= rows)
        return;
    const T *in = res + row * C;
    uint32_t key = mask.threshold ? mask_row(mask, mask_place(mask, row)) : 0;
    float total = 0, square = 0, x[4], w[4], b[4];
    for (int c = lane * 4; c < C; c += WARP * 4) {
        load4(x, in + c);
        if (branch)
            add_branch(x, sum + row * C, branch + row * C, c, key, mask);
        total += x[0] + x[1] + x[2] + x[3];
    }
    if (!out)
        return;
    if (branch)
        in = sum + row * C; // each thread reads again what it wrote itself
    float m = warp_sum(total) / C;
    for (int c = lane * 4; c < C; c += WARP * 4) {
        load4(x, in + c);
        for (int k = 0; k < 4; k++)
            square += (x[k] - m) * (x[k] - m);
    }
    float s = 1 / sqrtf(warp_sum(square) / C + NORM_EPS);
    for (int c = lane * 4; c < C; c += WARP * 4) {
        load4(x, in + c);
        load4(w, weight + c);
        load4(b, bias + c);
        for (int k = 0; k < 4; k++)
            x[k] = (x[k] - m) * s * w[k] + b[k];
        store4(out + row * C + c, x);
    }
    if (lane == 0) {
        mean[row] = m;
        rstd[row] = s;
    }
}

struct norm_in {
    const float *mean, *rstd;
    int C;
    size_t rows;
    bool add_dres;
};

// A warp computes a row. Each lane loads its 4 N numbers of the row at once and
// keeps them for the second pass.
template <typename T, int N>
__global__ void __launch_bounds__(ROWS_THREADS,
                                  sizeof(T) == 2 && N <= 6 ? 2 : 1)
    norm_rows_kernel(T *dres, T *out, float *partial, const T *dout,
                     const T *sum, const T *weight, const T *bias,
                     struct norm_in in)
{
    extern __shared__ float sums[]; // the block's dw (C), db (C)
    int C = in.C, warp = (int)(threadIdx.x / WARP);
    int first = (int)(threadIdx.x % WARP) * 4; // + n * WARP * 4
    float dw[N][4] = {}, db[N][4] = {}, w[4], b[4], y[4];
    size_t row = (size_t)blockIdx.x * ROWS_WARPS + (size_t)warp;
    for (; row < in.rows; row += (size_t)gridDim.x * ROWS_WARPS) {
        size_t at = row * C + first;
        four<T> xs[N] = {}, ds[N] = {}, rs[N] = {};
#pragma unroll
        for (int n = 0; n < N; n++, at += WARP * 4) {
            if (first + n * WARP * 4 >= C)
                continue;
            xs[n] = *reinterpret_cast<const four<T> *>(sum + at);
            ds[n] = *reinterpret_cast<const four<T> *>(dout + at);
            if (in.add_dres)
                rs[n] = *reinterpret_cast<const four<T> *>(dres + at);
        }
        float m = in.mean[row], s = in.rstd[row], g = 0, gx = 0;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = first + n * WARP * 4;
            if (c >= C)
                continue;
            load4(w, weight + c);
            load4(b, bias + c);
            for (int k = 0; k < 4; k++) {
                float x = (load(xs[n].v[k]) - m) * s, d = load(ds[n].v[k]);
                g += d * w[k];
                gx += d * w[k] * x;
                dw[n][k] += d * x;
                db[n][k] += d;
                y[k] = x * w[k] + b[k];
            }
            store4(out + row * C + c, y);
        }
        float g_mean = warp_sum(g) / C, gx_mean = warp_sum(gx) / C;
#pragma unroll
        for (int n = 0; n < N; n++) {
            int c = first + n * WARP * 4;
            if (c >= C)
                continue;
            load4(w, weight + c);
            for (int k = 0; k < 4; k++) {
                float x = (load(xs[n].v[k]) - m) * s, d = load(ds[n].v[k]);
                y[k] = load(rs[n].v[k]) + s * (d * w[k] - g_mean - x * gx_mean);
            }
            store4(dres + row * C + c, y);
        }
    }
    for (int adder = 0; adder < ROWS_WARPS; adder++) { // one warp at a time
#pragma unroll
        for (int i = 0; i < N * 4; i++) {
            int c = first + i / 4 * WARP * 4 + i % 4;
            if (adder != warp || c >= C)
                continue;
            sums[c] = (adder ? sums[c] : 0) + dw[i / 4][i % 4];
            sums[C + c] = (adder ? sums[C + c] : 0) + db[i / 4][i % 4];
        }
        __syncthreads();
    }
    for (int c = (int)threadIdx.x; c < 2 * C; c += ROWS_THREADS)
        partial[(size_t)blockIdx.x * 2 * C + c] = sums[c];
}

// Calls f with the number of packs of four numbers that a lane has of a row,
// rounded up to 2, 4, 6 or 8; with 0 if they are too many for its registers.
template <int N> using packs = std::integral_constant<int, N>;

template <typename F> void by_packs(int C, F f)
{
    if (C <= 2 * WARP * 4)
        f(packs<2>());
    else if (C <= 4 * WARP * 4)
        f(packs<4>());
    else if (C <= 6 * WARP * 4)
        f(packs<6>());
    else if (C <= WARP_CHANNELS)
        f(packs<8>());
    else
        f(packs<0>());
}

// First pass over a row: adds to the sums of the row (g, gx) and to those of
// weight and bias (dw, db), and writes LayerNorm's output again.
template <typename T>
__device__ void norm_sums(float *g, float *gx, float *dw, float *db, T *out,
                          const T *dout, const T *sum, const T *weight,
                          const T *bias, float m, float s, int C)
{
    float x[4], d[4], w[4], b[4];
    for (int c = (int)threadIdx.x * 4; c < C; c += THREADS * 4) {
        load4(x, sum + c);
        load4(d, dout + c);
        load4(w, weight + c);
        load4(b, bias + c);
        for (int k = 0; k < 4; k++) {
            x[k] = (x[k] - m) * s;
            *g += d[k] * w[k];
            *gx += d[k] * w[k] * x[k];
            dw[c + k] += d[k] * x[k];
            db[c + k] += d[k];
            x[k] = x[k] * w[k] + b[k];
        }
        store4(out + c, x);
    }
}

// Second pass: dres (+)= rstd (g - mean(g) - x^ mean(g x^)).
template <typename T>
__device__ void norm_dres(T *dres, bool add, const T *dout, const T *sum,
                          const T *weight, float m, float s, float g_mean,
                          float gx_mean, int C)
{
    float x[4], d[4], w[4], r[4] = {0, 0, 0, 0};
    for (int c = (int)threadIdx.x * 4; c < C; c += THREADS * 4) {
        load4(x, sum + c);
        load4(d, dout + c);
        load4(w, weight + c);
        if (add)
            load4(r, dres + c);
        for (int k = 0; k < 4; k++) {
            x[k] = (x[k] - m) * s;
            d[k] =
                (add ? r[k] : 0) + s * (d[k] * w[k] - g_mean - x[k] * gx_mean);
        }
        store4(dres + c, d);
    }
}

template <typename T>
__global__ void norm_backward_kernel(T *dres, T *out, float *partial,
                                     const T *dout, const T *sum,
                                     const T *weight, const T *bias,
                                     struct norm_in in)
{
    extern __shared__ float sums[]; // dw (C), db (C); a thread has own columns
    __shared__ float scratch[MAX_WARPS], scratch_x[MAX_WARPS];
    float *dw = sums, *db = sums + in.C;
    int C = in.C;
    for (int c = (int)threadIdx.x * 4; c < C; c += THREADS * 4)
        for (int k = 0; k < 4; k++)
            dw[c + k] = db[c + k] = 0;
    for (size_t row = blockIdx.x; row < in.rows; row += gridDim.x) {
        size_t at = row * C;
        float m = in.mean[row], s = in.rstd[row], g = 0, gx = 0;
        norm_sums(&g, &gx, dw, db, out + at, dout + at, sum + at, weight, bias,
                  m, s, C);
        float g_mean = block_sum(g, scratch) / C;
        float gx_mean = block_sum(gx, scratch_x) / C;
        norm_dres(dres + at, in.add_dres, dout + at, sum + at, weight, m, s,
                  g_mean, gx_mean, C);
    }
    float *mine = partial + (size_t)blockIdx.x * 2 * C;
    for (int c = (int)threadIdx.x * 4; c < C; c += THREADS * 4)
        for (int k = 0; k < 4; k++) {
            mine[c + k] = dw[c + k];
            mine[C + c + k] = db[c + k];
        }
}

// Adds up the partial sums. A block computes WARP columns; warp w adds up parts
// w, w + ROWS_AT_ONCE, .. of them.
__global__ void add_partials_kernel(float *dweight, float *dbias, bool add,
                                    const float *partial, int parts, int C)
{
    __shared__ float scratch[ROWS_AT_ONCE][WARP];
    int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    int c = (int)blockIdx.x * WARP + lane;
    float sum = 0;
    for (int p = warp; p < parts && c < 2 * C; p += ROWS_AT_ONCE)
        sum += partial[(size_t)p * 2 * C + c];
    scratch[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || c >= 2 * C)
        return;
    float *out = c < C ? dweight + c : dbias + (c - C);
    sum = add ? *out : 0;
    for (int w = 0; w < ROWS_AT_ONCE; w++)
        sum += scratch[w][lane];
    *out = sum;
}

void cuda_norm(void *sum, void *out, float *mean, float *rstd, const void *res,
               const void *branch, const void *branch_bias, const void *weight,
               const void *bias, size_t rows, int C, const struct mask *mask)
{
    const struct cuda_model *now = cuda_current();
    struct mask m = *mask;
    if (branch_bias) // the branch is scratch of the model
        cuda_bias(now->queue, now->format, const_cast<void *>(branch), NULL,
                  branch_bias, rows, C);
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        norm_kernel<<<blocks_for(rows, ROWS_AT_ONCE), THREADS, 0, queue>>>(
            (real *)sum, (real *)out, mean, rstd, (const real *)res,
            (const real *)branch, (const real *)weight, (const real *)bias,
            rows, C, m);
    });
}

void cuda_norm_backward(void *dres, bool add_dres, void *out, float *dweight,
                        float *dbias, bool add, const void *dout,
                        const void *sum, const float *mean, const float *rstd,
                        const void *weight, const void *bias, size_t rows,
                        int C, float *partial)
{
    struct norm_in in = {mean, rstd, C, rows, add_dres};
    size_t groups =
        C <= WARP_CHANNELS ? (rows + ROWS_WARPS - 1) / ROWS_WARPS : rows;
    groups = groups ? groups : 1; // a slice may have no rows
    int parts = groups < CUDA_PARTIALS ? (int)groups : CUDA_PARTIALS;
    launch([=](auto number, cudaStream_t queue) {
        typedef decltype(number) real;
        by_packs(C, [=](auto packs) {
            constexpr int N = decltype(packs)::value;
            const real *d = (const real *)dout, *x = (const real *)sum;
            const real *w = (const real *)weight, *b = (const real *)bias;
            size_t shared = 2 * C * sizeof(float);
            if constexpr (N > 0)
                norm_rows_kernel<real, N>
                    <<<(unsigned)parts, ROWS_THREADS, shared, queue>>>(
                        (real *)dres, (real *)out, partial, d, x, w, b, in);
            else
                norm_backward_kernel<<<(unsigned)parts, THREADS, shared,
                                       queue>>>((real *)dres, (real *)out,
                                                partial, d, x, w, b, in);
        });
        add_partials_kernel<<<blocks_for(2 * (size_t)C, WARP), THREADS, 0,
                              queue>>>(dweight, dbias, add, partial, parts, C);
    });
}
