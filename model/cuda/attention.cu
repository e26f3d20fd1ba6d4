// attention.cu - causal self-attention forward, never a (T,T) matrix.
//
//     O = softmax(Q K' / sqrt(D)) V, causal
//
// A block takes 64 queries of one head and walks over tiles of keys from the
// left to the diagonal, with a running maximum m and sum l for each row:
//
//     S = Q K';  m' = max(m, S);  P = e^(S - m');  c = e^(m - m')
//     l = c l + sum P;  O = c O + P V                    at the end O / l
//
// (Dao et al., FlashAttention, 2022; Milakov and Gimelshein, 2018). Kept for
// backward: lse = m + log l. Exponentials are powers of two: 1/sqrt(D) and
// log2 e are one factor.

#include "model/cuda/attention.cuh"

template <class M, int DP>
__global__ void __launch_bounds__(ATT_THREADS)
    attention_kernel(typename M::real *out, float *lse,
                     const typename M::real *qkv, struct cuda_attention a)
{
    typedef typename M::real real;
    constexpr int KEYS = TILE_ROWS<real>, LD = TILE_LD<DP>;
    __shared__ alignas(16) real tiles[2 * KEYS * LD];
    real *ks = tiles, *vs = tiles + KEYS * LD;
    head h = this_head(a);
    // The longest rows first: the last blocks to start are short ones.
    int q0 = (int)(gridDim.x - 1 - blockIdx.x) * ATT_ROWS;
    int row = q0 + (int)(threadIdx.x / 32) * ATT_WARP_ROWS + lane_g();
    const real *in = qkv + h.token * h.stride + h.column;
    uint32_t keys_of[2] = {0, 0}; // of the dropout mask, rows g and g + 8
    for (int r = 0; r < 2 && h.mask.threshold; r++)
        keys_of[r] = mask_row(h.mask, h.row0 + row + r * 8);

    frag_a<real> q[DP / 16];
    static_assert(2 * KEYS >= ATT_ROWS, "the queries pass through the tiles");
    load_tile<real, DP>(tiles, in + (size_t)q0 * h.stride, h.stride, ATT_ROWS,
                        h.T - q0, h.D);
    __syncthreads();
    load_rows<real, DP>(q, tiles, row - lane_g() - q0);

    frag_c o[DP / 8] = {};
    float m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0};
    float scale2 = h.scale * LOG2_E;
    int last = q0 + ATT_ROWS < h.T ? q0 + ATT_ROWS : h.T; // keys before it
    for (int k0 = 0; k0 < last; k0 += KEYS) {
        __syncthreads();
        const real *k_in = in + (size_t)k0 * h.stride + h.C;
        load_tile<real, DP>(ks, k_in, h.stride, KEYS, h.T - k0, h.D);
        load_tile<real, DP>(vs, k_in + h.C, h.stride, KEYS, h.T - k0, h.D);
        __syncthreads();

        frag_c s[KEYS / 8] = {};
#pragma unroll
        for (int k = 0; k < DP / 16; k++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                M::mma(s[n], q[k], load_b(ks, LD, n * 8, k * 16));

        float top[2] = {m[0], m[1]};
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
            for (int k = 0; k < 4; k++) {
                int key = k0 + n * 8 + 2 * lane_t() + k % 2;
                float x = s[n].v[k] * scale2;
                s[n].v[k] = key <= row + (k / 2) * 8 ? x : -INFINITY;
                top[k / 2] = fmaxf(top[k / 2], s[n].v[k]);
            }
        for (int r = 0; r < 2; r++) { // key 0 is in the first tile: m is finite
            top[r] = row_max_of(top[r]);
            float fade = exp2f(m[r] - top[r]);
            m[r] = top[r];
            l[r] *= fade;
#pragma unroll
            for (int n = 0; n < DP / 8; n++) {
                o[n].v[2 * r] *= fade;
                o[n].v[2 * r + 1] *= fade;
            }
        }
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
            for (int k = 0; k < 4; k++) {
                int key = k0 + n * 8 + 2 * lane_t() + k % 2;
                float p = exp2f(s[n].v[k] - m[k / 2]);
                l[k / 2] += p;
                if (h.mask.threshold)
                    p *= mask_at(h.mask, keys_of[k / 2], (uint32_t)key);
                s[n].v[k] = p;
            }
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++) {
            frag_a<real> p = a_from_c<real>(s[2 * k], s[2 * k + 1]);
#pragma unroll
            for (int n = 0; n < DP / 8; n++)
                M::mma(o[n], p, load_b_rows(vs, LD, k * 16, n * 8));
        }
    }
    for (int r = 0; r < 2; r++) {
        l[r] = row_sum_of(l[r]);
        if (lane_t() == 0 && row + r * 8 < h.T)
            lse[h.row0 + row + r * 8] = (m[r] + log2f(l[r])) * LN_2;
    }
    store_rows<real, DP>(out + h.token * h.C + h.column, (size_t)h.C, row, h.T,
                         h.D, o, 1 / l[0], 1 / l[1]);
}

void cuda_attention(void *queue, void *out, float *lse, const void *qkv,
                    const struct cuda_attention *attention)
{
    struct cuda_attention a = *attention;
    dim3 blocks((unsigned)((a.T + ATT_ROWS - 1) / ATT_ROWS),
                (unsigned)(a.B * a.NH));
    by_math(a.format, a.tf32, [=](auto math) {
        by_head(a.C / a.NH, [=](auto padded) {
            typedef decltype(math) M;
            typedef typename M::real real;
            attention_kernel<M, decltype(padded)::value>
                <<<blocks, ATT_THREADS, 0, (cudaStream_t)queue>>>(
                    (real *)out, lse, (const real *)qkv, a);
        });
    });
    CU(cudaGetLastError());
}
