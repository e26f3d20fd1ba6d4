// attention_backward.cu - the gradient of attention, from lse and no (T,T).
//
//     P = e^(S - lse);  dP = dO V';  row = sum(dO * O);  dS = P * (dP - row)
//     dV = P' dO;  dK = dS' Q;  dQ = dS K
//
// Two kernels instead of one: a block of the first owns 64 queries and sums
// their dQ over the keys, one of the second owns 64 keys and sums dK and dV
// over the queries. S and dP are computed twice, but nobody adds into another's
// memory: no atomics, and the same bits in every run.

#include "model/cuda/attention.cuh"

enum { CHUNK = 16 }; // columns whose S and dP are in registers at a time

// row_sum = sum over a head's channels of dO * O; a warp takes a row.
template <typename T>
__global__ void row_sum_kernel(float *row_sum, const T *dout, const T *out,
                               struct cuda_attention a)
{
    size_t rows = (size_t)a.B * a.NH * a.T;
    size_t i = thread_first() / 32;
    int lane = (int)(threadIdx.x % 32), D = a.C / a.NH;
    if (i >= rows)
        return;
    size_t bh = i / a.T, t = i % a.T;
    size_t at = (bh / a.NH * a.T + t) * a.C + bh % a.NH * D;
    float sum = 0;
    for (int d = lane; d < D; d += 32)
        sum += load(dout[at + d]) * load(out[at + d]);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0)
        row_sum[i] = sum;
}

// From a score (times scale2) and dP to P behind the mask and dS, where lse2 is
// log2 of the row's sum and `key` the row's own of the mask.
__device__ inline void softmax_backward(float *s, float *dp, float lse2,
                                        float row_sum, const head &h,
                                        uint32_t key, int column)
{
    float p = exp2f(*s - lse2), keep = 1;
    if (h.mask.threshold)
        keep = mask_at(h.mask, key, (uint32_t)column);
    *s = p * keep;
    *dp = p * (*dp * keep - row_sum);
}

template <class M, int DP>
__global__ void __launch_bounds__(ATT_THREADS)
    dq_kernel(typename M::real *dqkv, const typename M::real *dout,
              const typename M::real *qkv, const float *lse,
              const float *row_sum, struct cuda_attention a)
{
    typedef typename M::real real;
    constexpr int KEYS = TILE_ROWS<real>, LD = TILE_LD<DP>;
    __shared__ alignas(16) real tiles[2 * KEYS * LD];
    real *ks = tiles, *vs = tiles + KEYS * LD;
    head h = this_head(a);
    int q0 = (int)(gridDim.x - 1 - blockIdx.x) * ATT_ROWS;
    int row = q0 + (int)(threadIdx.x / 32) * ATT_WARP_ROWS + lane_g();
    const real *in = qkv + h.token * h.stride + h.column;
    const real *d_in = dout + h.token * h.C + h.column;

    frag_a<real> q[DP / 16], d[DP / 16];
    load_tile<real, DP>(tiles, in + (size_t)q0 * h.stride, h.stride, ATT_ROWS,
                        h.T - q0, h.D);
    __syncthreads();
    load_rows<real, DP>(q, tiles, row - lane_g() - q0);
    __syncthreads();
    load_tile<real, DP>(tiles, d_in + (size_t)q0 * h.C, (size_t)h.C, ATT_ROWS,
                        h.T - q0, h.D);
    __syncthreads();
    load_rows<real, DP>(d, tiles, row - lane_g() - q0);

    float lse2[2], sum[2], scale2 = h.scale * LOG2_E;
    uint32_t keys_of[2] = {0, 0};
    for (int r = 0; r < 2; r++) {
        bool valid = row + r * 8 < h.T; // e^(0 - inf) = 0 for the others
        lse2[r] = valid ? lse[h.row0 + row + r * 8] * LOG2_E : INFINITY;
        sum[r] = valid ? row_sum[h.row0 + row + r * 8] : 0;
        if (h.mask.threshold)
            keys_of[r] = mask_row(h.mask, h.row0 + row + r * 8);
    }
    frag_c dq[DP / 8] = {};
    int last = q0 + ATT_ROWS < h.T ? q0 + ATT_ROWS : h.T;
    for (int k0 = 0; k0 < last; k0 += KEYS) {
        __syncthreads();
        const real *k_in = in + (size_t)k0 * h.stride + h.C;
        load_tile<real, DP>(ks, k_in, h.stride, KEYS, h.T - k0, h.D);
        load_tile<real, DP>(vs, k_in + h.C, h.stride, KEYS, h.T - k0, h.D);
        __syncthreads();
#pragma unroll 1
        for (int c0 = 0; c0 < KEYS; c0 += CHUNK) {
            frag_c s[2] = {}, dp[2] = {};
#pragma unroll
            for (int k = 0; k < DP / 16; k++)
                for (int n = 0; n < 2; n++) {
                    int key = c0 + n * 8;
                    M::mma(s[n], q[k], load_b(ks, LD, key, k * 16));
                    M::mma(dp[n], d[k], load_b(vs, LD, key, k * 16));
                }
            for (int n = 0; n < 2; n++)
                for (int k = 0; k < 4; k++) {
                    int key = k0 + c0 + n * 8 + 2 * lane_t() + k % 2;
                    float x = s[n].v[k] * scale2;
                    if (key > row + (k / 2) * 8)
                        x = -INFINITY;
                    softmax_backward(&x, &dp[n].v[k], lse2[k / 2], sum[k / 2],
                                     h, keys_of[k / 2], key);
                }
            frag_a<real> ds = a_from_c<real>(dp[0], dp[1]);
#pragma unroll
            for (int n = 0; n < DP / 8; n++)
                M::mma(dq[n], ds, load_b_rows(ks, LD, c0, n * 8));
        }
    }
    store_rows<real, DP>(dqkv + h.token * h.stride + h.column, h.stride, row,
                         h.T, h.D, dq, h.scale, h.scale);
}

template <class M, int DP>
__global__ void __launch_bounds__(ATT_THREADS)
    dkv_kernel(typename M::real *dqkv, const typename M::real *dout,
               const typename M::real *qkv, const float *lse,
               const float *row_sum, struct cuda_attention a)
{
    typedef typename M::real real;
    constexpr int QUERIES = TILE_ROWS<real>, LD = TILE_LD<DP>;
    __shared__ alignas(16) real tiles[2 * QUERIES * LD];
    __shared__ float lse2[QUERIES], sum[QUERIES];
    __shared__ uint32_t keys_of[QUERIES];
    real *qs = tiles, *ds = tiles + QUERIES * LD;
    head h = this_head(a);
    int k0 = (int)blockIdx.x * ATT_ROWS; // the first keys have most queries
    int row = k0 + (int)(threadIdx.x / 32) * ATT_WARP_ROWS + lane_g();
    const real *in = qkv + h.token * h.stride + h.column;
    const real *d_in = dout + h.token * h.C + h.column;

    frag_a<real> key[DP / 16], value[DP / 16];
    const real *k_in = in + (size_t)k0 * h.stride + h.C;
    load_tile<real, DP>(tiles, k_in, h.stride, ATT_ROWS, h.T - k0, h.D);
    __syncthreads();
    load_rows<real, DP>(key, tiles, row - lane_g() - k0);
    __syncthreads();
    load_tile<real, DP>(tiles, k_in + h.C, h.stride, ATT_ROWS, h.T - k0, h.D);
    __syncthreads();
    load_rows<real, DP>(value, tiles, row - lane_g() - k0);

    frag_c dk[DP / 8] = {}, dv[DP / 8] = {};
    float scale2 = h.scale * LOG2_E;
    for (int q0 = k0; q0 < h.T; q0 += QUERIES) { // from the diagonal on
        __syncthreads();
        load_tile<real, DP>(qs, in + (size_t)q0 * h.stride, h.stride, QUERIES,
                            h.T - q0, h.D);
        load_tile<real, DP>(ds, d_in + (size_t)q0 * h.C, (size_t)h.C, QUERIES,
                            h.T - q0, h.D);
        for (int i = (int)threadIdx.x; i < QUERIES; i += ATT_THREADS) {
            bool valid = q0 + i < h.T;
            lse2[i] = valid ? lse[h.row0 + q0 + i] * LOG2_E : INFINITY;
            sum[i] = valid ? row_sum[h.row0 + q0 + i] : 0;
            keys_of[i] =
                h.mask.threshold ? mask_row(h.mask, h.row0 + q0 + i) : 0;
        }
        __syncthreads();
#pragma unroll 1
        for (int c0 = 0; c0 < QUERIES; c0 += CHUNK) {
            frag_c s[2] = {}, dp[2] = {}; // transposed: (keys, queries)
#pragma unroll
            for (int k = 0; k < DP / 16; k++)
                for (int n = 0; n < 2; n++) {
                    int query = c0 + n * 8;
                    M::mma(s[n], key[k], load_b(qs, LD, query, k * 16));
                    M::mma(dp[n], value[k], load_b(ds, LD, query, k * 16));
                }
            for (int n = 0; n < 2; n++)
                for (int k = 0; k < 4; k++) {
                    int i = c0 + n * 8 + 2 * lane_t() + k % 2;
                    int mine = row + (k / 2) * 8;
                    float x = s[n].v[k] * scale2;
                    if (mine > q0 + i)
                        x = -INFINITY;
                    softmax_backward(&x, &dp[n].v[k], lse2[i], sum[i], h,
                                     keys_of[i], mine);
                    s[n].v[k] = x;
                }
            frag_a<real> p = a_from_c<real>(s[0], s[1]);
            frag_a<real> dscore = a_from_c<real>(dp[0], dp[1]);
#pragma unroll
            for (int n = 0; n < DP / 8; n++) {
                M::mma(dv[n], p, load_b_rows(ds, LD, c0, n * 8));
                M::mma(dk[n], dscore, load_b_rows(qs, LD, c0, n * 8));
            }
        }
    }
    real *out = dqkv + h.token * h.stride + h.column;
    store_rows<real, DP>(out + h.C, h.stride, row, h.T, h.D, dk, h.scale,
                         h.scale);
    store_rows<real, DP>(out + 2 * h.C, h.stride, row, h.T, h.D, dv, 1, 1);
}

void cuda_attention_backward(void *queue, void *dqkv, float *row_sum,
                             const void *dout, const void *out,
                             const float *lse, const void *qkv,
                             const struct cuda_attention *attention)
{
    struct cuda_attention a = *attention;
    cudaStream_t stream = (cudaStream_t)queue;
    size_t rows = (size_t)a.B * a.NH * a.T;
    dim3 blocks((unsigned)((a.T + ATT_ROWS - 1) / ATT_ROWS),
                (unsigned)(a.B * a.NH));
    by_format(a.format, [=](auto number) {
        typedef decltype(number) real;
        row_sum_kernel<<<blocks_for(rows * 32, ATT_THREADS), ATT_THREADS, 0,
                         stream>>>(row_sum, (const real *)dout,
                                   (const real *)out, a);
    });
    CU(cudaGetLastError());
    by_math(a.format, a.tf32, [=](auto math) {
        by_head(a.C / a.NH, [=](auto padded) {
            typedef decltype(math) M;
            typedef typename M::real real;
            constexpr int DP = decltype(padded)::value;
            dq_kernel<M, DP>
                <<<blocks, ATT_THREADS, 0, stream>>>((real *)dqkv,
                                                     (const real *)dout,
                                                     (const real *)qkv, lse,
                                                     row_sum, a);
            dkv_kernel<M, DP>
                <<<blocks, ATT_THREADS, 0, stream>>>((real *)dqkv,
                                                     (const real *)dout,
                                                     (const real *)qkv, lse,
                                                     row_sum, a);
        });
    });
    CU(cudaGetLastError());
}
