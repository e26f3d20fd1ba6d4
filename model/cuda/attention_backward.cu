// attention_backward.cu - the gradient of attention, from lse, without a (T,T)
// matrix.
//
//     P = e^(S - lse);  dP = dO V';  row = sum(dO * O);  dS = P * (dP - row)
//     dV = P' dO;  dK = dS' Q;  dQ = dS K
//
// There are two kernels. A block of the first owns queries and sums their dQ
// over the keys. A block of the second owns keys and sums their dK and dV over
// the queries. S and dP are computed twice, but no block adds to another
// block's memory: there are no atomics, and every run has the same bits. The
// tiles for the next iteration are copied while a block computes with this
// one's.

#include "model/cuda/attention.cuh"

enum { CHUNK = 16 }; // columns whose S and dP are in registers at a time

// row_sum = sum over a head's channels of dO * O. A warp computes a row.
template <typename T>
__global__ void row_sum_kernel(float *row_sum, const T *dout, const T *out,
                               struct attention a)
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

// Computes one element. Before, s is a score and dp is dP. After, s is P times
// dropout's factor `keep`, and dp is dS. lse2 is log2 of the row's sum.
__device__ inline void softmax_backward(float *s, float *dp, float scale2,
                                        float lse2, float row_sum, float keep)
{
    float p = power_of_two(fmaf(*s, scale2, -lse2));
    *s = p * keep;
    *dp = p * (*dp * keep - row_sum);
}

template <class M, int DP, bool PART>
__global__ void __launch_bounds__(ATT_THREADS)
    dq_kernel(out_of<typename M::real, PART> *out, const typename M::real *dout,
              const typename M::real *qkv, const typename M::real *kv,
              const float *lse, const float *row_sum, struct heads all)
{
    typedef typename M::real real;
    typedef shape<real, DP> my;
    constexpr int G = my::GROUPS, KEYS = my::TILE, LD = my::LD;
    __shared__ alignas(16) real tiles[4 * my::SIZE]; // K, V, and the next two
    head h = this_head<PART>(all);
    int q0 = (int)(gridDim.x - 1 - blockIdx.x) * my::ROWS;
    int first = q0 + (int)(threadIdx.x / 32) * 16 * G; // the warp's rows
    int row = first + lane_g();                        // row + 8 r: this lane's
    const real *in = qkv + h.token * h.stride + h.column;
    const real *d_in = dout + h.token * h.C + h.column;

    frag_a<real> q[G][DP / 16], d[G][DP / 16];
    take_rows<real, DP>(q, tiles, in + (size_t)q0 * h.stride, h.stride,
                        h.queries - q0, h.D, first - q0);
    take_rows<real, DP>(d, tiles, d_in + (size_t)q0 * h.C, (size_t)h.C,
                        h.queries - q0, h.D, first - q0);

    float lse2[2 * G], sum[2 * G], scale2 = h.scale * LOG2_E;
    for (int r = 0; r < 2 * G; r++) {
        bool valid = row + r * 8 < h.queries; // e^(0 - inf) = 0 for the others
        lse2[r] = valid ? lse[h.row0 + row + r * 8] * LOG2_E : INFINITY;
        sum[r] = valid ? row_sum[h.row0 + row + r * 8] : 0;
    }
    frag_c dq[G][DP / 8] = {};
    int end = q0 + my::ROWS + h.ahead, last = end < h.keys ? end : h.keys;
    auto tile_step = [&](int k0, const real *tile) {
        if (k0 >= first + 16 * G + h.ahead)
            return; // all keys are later than the warp's queries
        const real *ks = tile + lane_b<real>(LD), *vs = ks + my::SIZE;
        const real *k_rows = tile + lane_rows<real>(LD);
#pragma unroll(sizeof(real) == 2 ? KEYS / CHUNK : 1)
        for (int c0 = 0; c0 < KEYS; c0 += CHUNK) {
            frag_c s[G][2] = {}, dp[G][2] = {};
            frag_b<real> b[2];
#pragma unroll
            for (int k = 0; k < DP / 16; k++) {
                load_b(b, ks + c0 * LD + k * 16, LD);
                for (int i = 0; i < 2 * G; i++)
                    M::mma(s[i / 2][i % 2], q[i / 2][k], b[i % 2]);
                load_b(b, vs + c0 * LD + k * 16, LD);
                for (int i = 0; i < 2 * G; i++)
                    M::mma(dp[i / 2][i % 2], d[i / 2][k], b[i % 2]);
            }
            int key = k0 + c0 + 2 * lane_t();        // + n * 8 + k % 2
            if (k0 + c0 + CHUNK - 1 > h.sees(first)) // the diagonal, or the end
                hide_later<G, 2>(s, h, row, key);
            frag_a<real> ds[G];
#pragma unroll
            for (int g = 0; g < G; g++) {
                for (int i = 0; i < 8; i++) {
                    int r = 2 * g + i / 2 % 2;
                    float keep = 1;
                    if (h.mask.threshold)
                        keep = mask_at(h.mask,
                                       mask_row(h.mask, h.mask0 + row + r * 8),
                                       (uint32_t)(h.key0 + key + i / 4 * 8 +
                                                  i % 2));
                    softmax_backward(&s[g][i / 4].v[i % 4],
                                     &dp[g][i / 4].v[i % 4], scale2, lse2[r],
                                     sum[r], keep);
                }
                ds[g] = a_from_c<real>(dp[g][0], dp[g][1]);
            }
#pragma unroll
            for (int n = 0; n < DP / 8; n += 2) {
                load_b_rows(b, k_rows + c0 * LD + n * 8, LD);
                for (int i = 0; i < 2 * G; i++)
                    M::mma(dq[i / 2][n + i % 2], ds[i / 2], b[i % 2]);
            }
        }
    };
    each_keys<real, DP>(tiles, first_key<PART>(h, in, kv), h, last, tile_step);
    size_t stride = PART ? (size_t)h.C : h.stride;
#pragma unroll
    for (int g = 0; g < G; g++)
        store_rows<out_of<real, PART>, DP>(out + h.token * stride + h.column,
                                           stride, row + g * 16, h.queries, h.D,
                                           dq[g], h.scale, h.scale, PART, PART);
}

template <class M, int DP, bool PART>
__global__ void __launch_bounds__(ATT_THREADS)
    dkv_kernel(out_of<typename M::real, PART> *dkv,
               const typename M::real *dout, const typename M::real *qkv,
               const typename M::real *kv, const float *lse,
               const float *row_sum, struct heads all)
{
    typedef typename M::real real;
    typedef shape<real, DP> my;
    constexpr int G = my::GROUPS, LD = my::LD;
    // Two groups leave no registers for K. Then K's rows stay in shared memory,
    // and the tiles have half the size.
    constexpr bool STAYS = G > 1;
    constexpr int QUERIES = STAYS ? my::TILE / 2 : my::TILE;
    constexpr int SIZE = QUERIES * LD;
    __shared__ alignas(16) real tiles[4 * SIZE]; // Q, dO, and the next two
    __shared__ alignas(16) real own[STAYS ? my::ROWS * LD : 8];
    __shared__ float rows[4 * QUERIES]; // the queries' lse and row_sum
    head h = this_head<PART>(all);
    int k0 = (int)blockIdx.x * my::ROWS; // the first keys have most queries
    int first = k0 + (int)(threadIdx.x / 32) * 16 * G; // the warp's keys
    int mine = first + lane_g(); // mine + 8 r: this lane's
    const real *in = qkv + h.token * h.stride + h.column;
    const real *d_in = dout + h.token * h.C + h.column;

    frag_a<real> key[STAYS ? 1 : G][DP / 16], value[G][DP / 16];
    const real *k_in = first_key<PART>(h, in, kv) + (size_t)k0 * h.kv_stride;
    const real *k_rows = own + (first - k0) * LD + lane_a<real>(LD);
    copy_tile<real, DP, my::ROWS>(STAYS ? own : tiles, k_in, h.kv_stride,
                                  h.keys - k0, h.D);
    copy_wait();
    __syncthreads();
    if constexpr (!STAYS) {
        for (int g = 0; g < G; g++)
            load_rows<real, DP>(key[g], tiles, first - k0 + g * 16);
        __syncthreads();
    }
    take_rows<real, DP>(value, tiles, k_in + h.C, h.kv_stride, h.keys - k0, h.D,
                        first - k0);

    frag_c dk[G][DP / 8] = {}, dv[G][DP / 8] = {};
    float scale2 = h.scale * LOG2_E;
    // Rows after the last one have zeros for Q and dO, and so add nothing.
    auto copy_queries = [&](int q0, int half) {
        real *to = tiles + half * 2 * SIZE;
        copy_tile<real, DP, QUERIES>(to, in + (size_t)q0 * h.stride, h.stride,
                                     h.queries - q0, h.D);
        copy_tile<real, DP, QUERIES>(to + SIZE, d_in + (size_t)q0 * h.C,
                                     (size_t)h.C, h.queries - q0, h.D);
        int i = (int)threadIdx.x;
        if (i < 2 * QUERIES)
            copy_one(&rows[half * 2 * QUERIES + i],
                     (i < QUERIES ? lse : row_sum) + h.row0 + q0 + i % QUERIES,
                     q0 + i % QUERIES < h.queries);
    };
    int half = 0; // which half of tiles and rows this iteration reads
    int q_first = k0 > h.ahead ? k0 - h.ahead : 0; // the diagonal
    copy_queries(q_first, half);
    for (int q0 = q_first; q0 < h.queries; q0 += QUERIES, half ^= 1) {
        copy_wait();
        __syncthreads(); // the tiles are complete, the last ones are free
        if (q0 + QUERIES < h.queries)
            copy_queries(q0 + QUERIES, half ^ 1);
        if (q0 + QUERIES + h.ahead <= first)
            continue; // all queries are before the warp's keys
        const real *pair = tiles + half * 2 * SIZE;
        const real *qs = pair + lane_b<real>(LD), *ds = qs + SIZE;
        const real *q_rows = pair + lane_rows<real>(LD);
        const float *lses = rows + half * 2 * QUERIES, *sums = lses + QUERIES;
#pragma unroll(STAYS ? QUERIES / CHUNK : 1)
        for (int c0 = 0; c0 < QUERIES; c0 += CHUNK) {
            frag_c s[G][2] = {}, dp[G][2] = {}; // transposed: (keys, queries)
            frag_b<real> b[2];
#pragma unroll
            for (int k = 0; k < DP / 16; k++) {
                load_b(b, qs + c0 * LD + k * 16, LD);
                for (int g = 0; g < G; g++) {
                    frag_a<real> a;
                    if constexpr (STAYS)
                        a = load_a(k_rows + g * 16 * LD + k * 16, LD);
                    else
                        a = key[g][k];
                    M::mma(s[g][0], a, b[0]);
                    M::mma(s[g][1], a, b[1]);
                }
                load_b(b, ds + c0 * LD + k * 16, LD);
                for (int i = 0; i < 2 * G; i++)
                    M::mma(dp[i / 2][i % 2], value[i / 2][k], b[i % 2]);
            }
            int i0 = c0 + 2 * lane_t(); // of the tile; + n * 8 + k % 2
            if (first + 16 * G > q0 + c0 + h.ahead + 1) // the diagonal
#pragma unroll
                for (int i = 0; i < 8 * G; i++)
                    if (mine + i / 8 * 16 + i / 2 % 2 * 8 >
                        h.ahead + q0 + i0 + i / 4 % 2 * 8 + i % 2)
                        s[i / 8][i / 4 % 2].v[i % 4] = -INFINITY;
            float lse2[4], sum[4];
            for (int i = 0; i < 4; i++) {
                lse2[i] = lses[i0 + i / 2 * 8 + i % 2] * LOG2_E;
                sum[i] = sums[i0 + i / 2 * 8 + i % 2];
            }
            frag_a<real> p[G], dscore[G];
#pragma unroll
            for (int g = 0; g < G; g++) {
                for (int i = 0; i < 8; i++) {
                    int j = i / 4 * 2 + i % 2; // of the lane's four queries
                    float keep = 1;
                    if (h.mask.threshold)
                        keep = mask_at(h.mask,
                                       mask_row(h.mask, h.mask0 + q0 + i0 +
                                                            i / 4 * 8 + i % 2),
                                       (uint32_t)(h.key0 + mine + g * 16 +
                                                  i / 2 % 2 * 8));
                    softmax_backward(&s[g][i / 4].v[i % 4],
                                     &dp[g][i / 4].v[i % 4], scale2, lse2[j],
                                     sum[j], keep);
                }
                p[g] = a_from_c<real>(s[g][0], s[g][1]);
                dscore[g] = a_from_c<real>(dp[g][0], dp[g][1]);
            }
#pragma unroll
            for (int n = 0; n < DP / 8; n += 2) {
                load_b_rows(b, q_rows + SIZE + c0 * LD + n * 8, LD);
                for (int i = 0; i < 2 * G; i++)
                    M::mma(dv[i / 2][n + i % 2], p[i / 2], b[i % 2]);
                load_b_rows(b, q_rows + c0 * LD + n * 8, LD);
                for (int i = 0; i < 2 * G; i++)
                    M::mma(dk[i / 2][n + i % 2], dscore[i / 2], b[i % 2]);
            }
        }
    }
    dkv += h.kv_token * h.kv_stride + h.column + (PART ? 0 : h.C);
#pragma unroll
    for (int g = 0; g < G; g++) {
        store_rows<out_of<real, PART>, DP>(dkv, h.kv_stride, mine + g * 16,
                                           h.keys, h.D, dk[g], h.scale, h.scale,
                                           PART, PART);
        store_rows<out_of<real, PART>, DP>(dkv + h.C, h.kv_stride,
                                           mine + g * 16, h.keys, h.D, dv[g], 1,
                                           1, PART, PART);
    }
}

// a.scratch = row_sum for all queries of a worker, `tokens` in each sequence.
static void sum_rows(const void *dout, const void *out, struct attention a,
                     int tokens)
{
    const struct cuda_model *now = cuda_current();
    size_t rows = (size_t)a.B * a.NH * tokens;
    a.T = tokens;
    by_format(now->format, [=](auto number) {
        typedef decltype(number) real;
        row_sum_kernel<<<blocks_for(rows * 32, ATT_THREADS), ATT_THREADS, 0,
                         (cudaStream_t)now->queue>>>(a.scratch,
                                                     (const real *)dout,
                                                     (const real *)out, a);
    });
    CU(cudaGetLastError());
}

// Without PART, dq and dkv are dqkv.
template <bool PART>
static void launch(void *dq, void *dkv, const void *dout, const float *lse,
                   const void *qkv, const void *kv, struct attention_runs r,
                   struct attention a)
{
    const struct cuda_model *now = cuda_current();
    cudaStream_t stream = (cudaStream_t)now->queue;
    by_math(now->format, now->tf32, [=](auto math) {
        by_head(a.C / a.NH, [=](auto padded) {
            typedef decltype(math) M;
            typedef typename M::real real;
            constexpr int DP = decltype(padded)::value;
            typedef out_of<real, PART> wide;
            int queries = PART ? r.queries.n : a.T;
            int keys = PART ? r.keys.n : a.T;
            dq_kernel<M, DP, PART>
                <<<blocks_of<real, DP>(a, queries), ATT_THREADS, 0, stream>>>(
                    (wide *)dq, (const real *)dout, (const real *)qkv,
                    (const real *)kv, lse, a.scratch, heads_of(a, r));
            dkv_kernel<M, DP, PART>
                <<<blocks_of<real, DP>(a, keys), ATT_THREADS, 0, stream>>>(
                    (wide *)dkv, (const real *)dout, (const real *)qkv,
                    (const real *)kv, lse, a.scratch, heads_of(a, r));
        });
    });
    CU(cudaGetLastError());
}

void cuda_attention_backward(void *dqkv, const void *dout, const void *out,
                             const float *lse, const void *qkv,
                             const struct attention *a)
{
    sum_rows(dout, out, *a, a->T);
    launch<false>(dqkv, dqkv, dout, lse, qkv, NULL, {}, *a);
}

void cuda_attention_block_backward(float *dq, float *dkv, const void *dout,
                                   const void *out, const float *lse,
                                   const void *qkv, const void *kv,
                                   const struct attention_runs *r,
                                   const struct attention *a)
{
    sum_rows(dout, out, *a, r->of_queries);
    launch<true>(dq, dkv, dout, lse, qkv, kv, *r, *a);
}
