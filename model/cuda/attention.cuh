// attention.cuh - what attention forward and backward share: the place of a
// head in its tensors, and tiles of rows in shared memory.

#pragma once

#include "model/cuda/kernels_cuda.h"
#include "model/cuda/mask.cuh"
#include "model/cuda/tensor.cuh"

#include <limits.h>
#include <type_traits>

enum { ATT_THREADS = 128, ATT_WARPS = ATT_THREADS / 32 };

#define LOG2_E 1.44269504f
#define LN_2   0.693147181f

// The sizes of a block's data, for heads of DP channels. A block owns ROWS rows
// (of queries, say), 16 GROUPS of them in each warp. It reads the other side
// (the keys) in tiles of TILE rows. With two groups each fragment of a tile is
// used twice; larger heads have no registers for that. Two tiles and the two
// that follow take at most 36 KiB. Rows are padded by 16 or 32 bytes, so that
// the lanes of a fragment use different banks.
template <typename T, int DP> struct shape {
    static constexpr int GROUPS = sizeof(T) == 2 && DP == 64 ? 2 : 1;
    static constexpr int ROWS = ATT_WARPS * 16 * GROUPS;
    static constexpr int TILE = 8192 / (DP * (int)sizeof(T));
    static constexpr int LD = DP + 8;
    static constexpr int SIZE = TILE * LD; // of a tile
};

// What all heads have in common.
struct heads {
    int T, D, C, NH;
    float scale; // 1 / sqrt(D)
    struct mask mask;
    int first, whole; // number of the first head, of all heads in the model
    struct attention_runs runs; // with PART
};

inline struct heads heads_of(const struct attention &a,
                             const struct attention_runs &r)
{
    int D = a.C / a.NH;
    return {a.T,
            D,
            a.C,
            a.NH,
            1 / sqrtf((float)D),
            a.mask,
            a.head,
            a.heads ? a.heads : a.NH,
            r};
}

// The head that a block works on. blockIdx is (rows, head, sequence), so the
// values are the same for all threads of a block.
struct head : heads {
    int queries, keys; // tokens: T
    // Query i sees the keys up to i + ahead, and at most the last one.
    int ahead, last_key;
    int key0;         // position of the first key
    size_t stride;    // between tokens of qkv: 3C
    size_t kv_stride; // between tokens of keys: 3C, or in a block of scores 2C
    size_t token, kv_token; // the sequence's first row; the same of keys
    int column;             // the head's first channel
    size_t row0;            // index of its first row of probabilities
    size_t mask0; // the same in the whole model, by which masks are numbered

    // The last key that a query sees.
    __device__ int sees(int query) const
    {
        return query + ahead < last_key ? query + ahead : last_key;
    }
};

// PART: the queries and keys are those of all.runs. Else they are whole
// sequences, of which the causal mask alone hides keys.
template <bool PART> __device__ inline head this_head(const struct heads &all)
{
    size_t sequence = blockIdx.z, number = sequence * all.NH + blockIdx.y;
    size_t whole = sequence * all.whole + all.first + blockIdx.y;
    int column = (int)blockIdx.y * all.D;
    size_t C = (size_t)all.C, T = (size_t)all.T;
    if constexpr (PART) {
        const struct attention_runs &r = all.runs;
        return {all,
                r.queries.n,
                r.keys.n,
                r.queries.first - r.keys.first,
                r.keys.n - 1,
                r.keys.first,
                3 * C,
                2 * C,
                sequence * r.of_queries + r.queries.at,
                sequence * r.of_keys + r.keys.at,
                column,
                number * r.of_queries + r.queries.at,
                whole * T + r.queries.first};
    } else {
        return {all,          all.T,
                all.T,        0,
                INT_MAX,      0,
                3 * C,        3 * C,
                sequence * T, sequence * T,
                column,       number * T,
                whole * T};
    }
}

// The head's first key, where `in` is its first query.
template <bool PART, typename T>
__device__ inline const T *first_key(const head &h, const T *in, const T *kv)
{
    return PART ? kv + h.kv_token * h.kv_stride + h.column : in + h.C;
}

// Begins to copy: tile (ROWS, DP) = rows of D numbers, which are `stride`
// apart. `valid` of them exist; the rest is zeros. All threads of the block
// call this. The tile is complete after copy_wait() and a barrier.
template <typename T, int DP, int ROWS>
__device__ inline void copy_tile(T *tile, const T *in, size_t stride, int valid,
                                 int D)
{
    constexpr int WIDE = 16 / sizeof(T), LD = shape<T, DP>::LD;
    constexpr int STEP = ATT_THREADS / (DP / WIDE); // rows at a time
    if (D % WIDE == 0) { // rows begin at multiples of 16 bytes
        int r = (int)threadIdx.x / (DP / WIDE);
        int c = (int)threadIdx.x % (DP / WIDE) * WIDE;
        const T *from = in + (size_t)r * stride + c;
        tile += r * LD + c;
#pragma unroll
        for (int i = 0; i < ROWS; i += STEP, from += STEP * stride)
            copy_begin(tile + i * LD, from, r + i < valid && c < D);
        return;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < ROWS * DP; i += ATT_THREADS) {
        int r = i / DP, c = i % DP;
        tile[r * LD + c] =
            r < valid && c < D ? in[r * stride + c] : store<T>(0);
    }
}

// Rows of a tile as A, with all DP columns.
template <typename T, int DP>
__device__ inline void load_rows(frag_a<T> a[DP / 16], const T *tile, int row0)
{
    constexpr int LD = shape<T, DP>::LD;
    tile += row0 * LD + lane_a<T>(LD);
#pragma unroll
    for (int k = 0; k < DP / 16; k++)
        a[k] = load_a(tile + k * 16, LD);
}

// Loads a warp's own rows as A. `in` is the block's first row, `valid` rows
// exist, and the warp's begin with row0. The rows are copied through `scratch`,
// which no thread reads after the call. All threads of the block call this.
template <typename T, int DP>
__device__ inline void take_rows(frag_a<T> a[shape<T, DP>::GROUPS][DP / 16],
                                 T *scratch, const T *in, size_t stride,
                                 int valid, int D, int row0)
{
    copy_tile<T, DP, shape<T, DP>::ROWS>(scratch, in, stride, valid, D);
    copy_wait();
    __syncthreads();
    for (int g = 0; g < shape<T, DP>::GROUPS; g++)
        load_rows<T, DP>(a[g], scratch, row0 + g * 16);
    __syncthreads();
}

// Calls f(k0, K's tile) for each tile of keys k0, k0 + 1, .. before `last`. V's
// tile is SIZE numbers after K's. `tiles` has four tiles: the next two are
// copied while f computes. k_in is the head's first key. All threads of the
// block call this.
template <typename T, int DP, typename F>
__device__ inline void each_keys(T *tiles, const T *k_in, const head &h,
                                 int last, F f)
{
    constexpr int KEYS = shape<T, DP>::TILE, SIZE = shape<T, DP>::SIZE;
    copy_tile<T, DP, KEYS>(tiles, k_in, h.kv_stride, h.keys, h.D);
    copy_tile<T, DP, KEYS>(tiles + SIZE, k_in + h.C, h.kv_stride, h.keys, h.D);
    int half = 0; // where K and V of this iteration are
    for (int k0 = 0; k0 < last; k0 += KEYS, half = 2 * SIZE - half) {
        copy_wait();
        __syncthreads(); // the tiles are complete, the last ones are free
        if (k0 + KEYS < last) {
            T *next = tiles + 2 * SIZE - half;
            k_in += KEYS * h.kv_stride;
            copy_tile<T, DP, KEYS>(next, k_in, h.kv_stride, h.keys - k0 - KEYS,
                                   h.D);
            copy_tile<T, DP, KEYS>(next + SIZE, k_in + h.C, h.kv_stride,
                                   h.keys - k0 - KEYS, h.D);
        }
        f(k0, tiles + half);
    }
}

// Rows g and g + 8 of out = those of c times f0 and f1, if they exist, plus
// what was there times keep0 and keep1. `row` is the index of row g.
template <typename T, int DP>
__device__ inline void store_rows(T *out, size_t stride, int row, int T_, int D,
                                  const frag_c c[DP / 8], float f0, float f1,
                                  float keep0 = 0, float keep1 = 0)
{
    typedef typename pair_of<T>::type pair;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float f = half ? f1 : f0, keep = half ? keep1 : keep0;
        T *to = out + (size_t)(row + half * 8) * stride;
        if (row + half * 8 >= T_)
            return;
#pragma unroll
        for (int n = 0; n < DP / 8; n++) {
            int d = n * 8 + 2 * lane_t();
            float x = c[n].v[2 * half] * f, y = c[n].v[2 * half + 1] * f;
            if (keep > 0 && d < D)
                x += keep * load(to[d]);
            if (keep > 0 && d + 1 < D)
                y += keep * load(to[d + 1]);
            if (D % 2 == 0 && d < D) {
                *reinterpret_cast<pair *>(to + d) = make_pair<T>(x, y);
            } else {
                if (d < D)
                    to[d] = store<T>(x);
                if (d + 1 < D)
                    to[d + 1] = store<T>(y);
            }
        }
    }
}

// s has the scores of rows row, row + 8, .. and columns column, column + 1, ...
// Sets them to -infinity where the query (the row) does not see the key (the
// column).
template <int G, int N>
__device__ inline void hide_later(frag_c s[G][N], const head &h, int row,
                                  int column)
{
#pragma unroll
    for (int i = 0; i < G * N * 4; i++) {
        int g = i / (N * 4), n = i / 4 % N, k = i % 4;
        if (column + n * 8 + k % 2 > h.sees(row + g * 16 + k / 2 * 8))
            s[g][n].v[k] = -INFINITY;
    }
}

// Sum and maximum over the four lanes that hold a row of C.
__device__ inline float row_sum_of(float x)
{
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

__device__ inline float row_max_of(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

// The grid: one block for every ROWS of `rows` rows of each head.
template <typename T, int DP>
dim3 blocks_of(const struct attention &a, int rows)
{
    constexpr int ROWS = shape<T, DP>::ROWS;
    return dim3((unsigned)((rows + ROWS - 1) / ROWS), (unsigned)a.NH,
                (unsigned)a.B);
}

// What kernels write: numbers of the format, or with PART fp32.
template <typename T, bool PART>
using out_of = typename std::conditional<PART, float, T>::type;

// Calls f with the padded size of a head as a constant.
template <typename F> void by_head(int D, F f)
{
    if (D <= 64)
        f(std::integral_constant<int, 64>());
    else
        f(std::integral_constant<int, 128>());
}
