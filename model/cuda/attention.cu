// attention.cu - causal self-attention forward, without a (T,T) matrix.
//
//     O = softmax(Q K' / sqrt(D)) V, causal
//
// A block works on some queries of one head. It goes over tiles of keys from
// the left to the diagonal, with a running maximum m and sum l for each row:
//
//     S = Q K';  m' = max(m, S);  P = e^(S - m');  c = e^(m - m')
//     l = c l + sum P;  O = c O + P V                    at the end O / l
//
// (Dao et al., FlashAttention, 2022; Milakov and Gimelshein, 2018). The next
// tile is copied while the block computes with one. Forward keeps lse = m + log
// l for backward. Exponentials are powers of two: 1/sqrt(D) and log2 e are one
// factor, `scale2`, applied after the maximum is known.

#include "model/cuda/attention.cuh"

// Applies dropout's mask to rows row and row + 8 of P, from key `column` on.
__device__ inline void drop(frag_c p[2], const head &h, int row, int column)
{
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint32_t key = mask_row(h.mask, h.mask0 + row + i / 2 % 2 * 8);
        int at = h.key0 + column + i / 4 * 8 + 2 * lane_t() + i % 2;
        p[i / 4].v[i % 4] *= mask_at(h.mask, key, (uint32_t)at);
    }
}

// Merges a row's result of a block of scores, whose log of its sum is `own`,
// into the row's result so far (attention_block.c). *f: the factor of the own
// result; returns that of the other. *lse and `exists` are those of the row.
__device__ inline float merge(float *f, float *lse, float own, bool exists,
                              bool first)
{
    bool mine = lane_t() == 0 && exists; // of the four lanes with the row
    float before = mine && !first ? *lse : -INFINITY;
    before = from_lane(before, lane_g() * 4);
    float most = fmaxf(before, own);
    float old = expf(before - most), now = expf(own - most), sum = old + now;
    if (mine)
        *lse = most + logf(sum);
    *f *= now / sum;
    return old / sum;
}

template <class M, int DP, bool PART>
__global__ void __launch_bounds__(ATT_THREADS)
    attention_kernel(out_of<typename M::real, PART> *out, float *lse,
                     const typename M::real *qkv, const typename M::real *kv,
                     struct heads all)
{
    typedef typename M::real real;
    typedef shape<real, DP> my;
    constexpr int G = my::GROUPS, KEYS = my::TILE, LD = my::LD;
    __shared__ alignas(16) real tiles[4 * my::SIZE]; // K, V, and the next two
    head h = this_head<PART>(all);
    // The longest rows first: the last blocks to start are short ones.
    int q0 = (int)(gridDim.x - 1 - blockIdx.x) * my::ROWS;
    int first = q0 + (int)(threadIdx.x / 32) * 16 * G; // the warp's rows
    int row = first + lane_g();                        // row + 8 r: this lane's
    const real *in = qkv + h.token * h.stride + h.column;

    frag_a<real> q[G][DP / 16];
    static_assert(my::ROWS <= 4 * KEYS, "the queries pass through the tiles");
    take_rows<real, DP>(q, tiles, in + (size_t)q0 * h.stride, h.stride,
                        h.queries - q0, h.D, first - q0);

    frag_c o[G][DP / 8] = {};
    float m[2 * G], l[2 * G] = {}, scale2 = h.scale * LOG2_E;
    for (int r = 0; r < 2 * G; r++)
        m[r] = -INFINITY;
    int end = q0 + my::ROWS + h.ahead;
    int last = end < h.keys ? end : h.keys; // keys before it
    auto tile_step = [&](int k0, const real *tile) {
        const real *ks = tile + lane_b<real>(LD);
        const real *vs = tile + my::SIZE + lane_rows<real>(LD);
        if (k0 >= first + 16 * G + h.ahead)
            return; // all keys are later than the warp's queries
        frag_c s[G][KEYS / 8] = {};
        frag_b<real> b[2];
#pragma unroll
        for (int k = 0; k < DP / 16; k++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n += 2) {
                load_b(b, ks + n * 8 * LD + k * 16, LD);
                for (int g = 0; g < G; g++) {
                    M::mma(s[g][n], q[g][k], b[0]);
                    M::mma(s[g][n + 1], q[g][k], b[1]);
                }
            }
        if (k0 + KEYS - 1 > h.sees(first)) // the diagonal, or the end
            hide_later<G, KEYS / 8>(s, h, row, k0 + 2 * lane_t());
        float m2[2 * G];
#pragma unroll
        for (int r = 0; r < 2 * G; r++) { // m is finite: key 0 came first
            frag_c *x = s[r / 2];
            float top = m[r];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
                top =
                    fmaxf(top, fmaxf(x[n].v[r % 2 * 2], x[n].v[r % 2 * 2 + 1]));
            top = row_max_of(top);
            float fade = power_of_two((m[r] - top) * scale2);
            m[r] = top;
            m2[r] = top * scale2;
            l[r] *= fade;
#pragma unroll
            for (int n = 0; n < DP / 8; n++) {
                o[r / 2][n].v[r % 2 * 2] *= fade;
                o[r / 2][n].v[r % 2 * 2 + 1] *= fade;
            }
        }
#pragma unroll
        for (int c = 0; c < KEYS / 16; c++) {
            frag_a<real> p[G];
#pragma unroll
            for (int g = 0; g < G; g++) {
                frag_c *x = &s[g][2 * c];
                for (int i = 0; i < 8; i++) {
                    int r = 2 * g + i / 2 % 2;
                    float *e = &x[i / 4].v[i % 4];
                    *e = power_of_two(fmaf(*e, scale2, -m2[r]));
                    l[r] += *e;
                }
                if (h.mask.threshold)
                    drop(x, h, row + g * 16, k0 + c * 16);
                p[g] = a_from_c<real>(x[0], x[1]);
            }
#pragma unroll
            for (int n = 0; n < DP / 8; n += 2) {
                load_b_rows(b, vs + c * 16 * LD + n * 8, LD);
                for (int g = 0; g < G; g++) {
                    M::mma(o[g][n], p[g], b[0]);
                    M::mma(o[g][n + 1], p[g], b[1]);
                }
            }
        }
    };
    each_keys<real, DP>(tiles, first_key<PART>(h, in, kv), h, last, tile_step);
    float f[2 * G], keep[2 * G] = {};
#pragma unroll
    for (int r = 0; r < 2 * G; r++) {
        bool exists = row + r * 8 < h.queries;
        l[r] = row_sum_of(l[r]);
        f[r] = 1 / l[r];
        float own = m[r] * h.scale + logf(l[r]);
        float *at = lse + h.row0 + row + r * 8;
        if (PART)
            keep[r] = merge(&f[r], at, own, exists, h.runs.first);
        else if (lane_t() == 0 && exists)
            *at = own;
    }
#pragma unroll
    for (int g = 0; g < G; g++)
        store_rows<out_of<real, PART>, DP>(out + h.token * h.C + h.column,
                                           (size_t)h.C, row + g * 16, h.queries,
                                           h.D, o[g], f[2 * g], f[2 * g + 1],
                                           keep[2 * g], keep[2 * g + 1]);
}

template <bool PART>
static void launch(void *out, float *lse, const void *qkv, const void *kv,
                   struct attention_runs r, struct attention a)
{
    const struct cuda_model *now = cuda_current();
    by_math(now->format, now->tf32, [=](auto math) {
        by_head(a.C / a.NH, [=](auto padded) {
            typedef decltype(math) M;
            typedef typename M::real real;
            constexpr int DP = decltype(padded)::value;
            dim3 blocks = blocks_of<real, DP>(a, PART ? r.queries.n : a.T);
            attention_kernel<M, DP, PART>
                <<<blocks, ATT_THREADS, 0, (cudaStream_t)now->queue>>>(
                    (out_of<real, PART> *)out, lse, (const real *)qkv,
                    (const real *)kv, heads_of(a, r));
        });
    });
    CU(cudaGetLastError());
}

void cuda_attention(void *out, float *lse, const void *qkv,
                    const struct attention *a)
{
    launch<false>(out, lse, qkv, NULL, {}, *a);
}

void cuda_attention_block(float *out, float *lse, const void *qkv,
                          const void *kv, const struct attention_runs *r,
                          const struct attention *a)
{
    launch<true>(out, lse, qkv, kv, *r, *a);
}
