// attention.cuh - what attention forward and backward share: a head's view, and
// tiles of rows in shared memory.

#ifndef MODEL_CUDA_ATTENTION_CUH
#define MODEL_CUDA_ATTENTION_CUH

#include "model/cuda/kernels.h"
#include "model/cuda/mask.cuh"
#include "model/cuda/tensor.cuh"

// A block has 4 warps of 16 rows each; a tile of the other side has 64 rows, or
// 32 of fp32, so that two of them fit 48 KiB of shared memory.
enum { ATT_THREADS = 128, ATT_ROWS = 64, ATT_WARP_ROWS = 16 };

#define LOG2_E 1.44269504f
#define LN_2   0.693147181f

template <typename T> constexpr int TILE_ROWS = sizeof(T) == 4 ? 32 : 64;

// Rows are padded by 16 or 32 bytes, so that a fragment's lanes hit different
// banks.
template <int DP> constexpr int TILE_LD = DP + 8;

struct head {
    int T, D, C;
    size_t stride; // between tokens of qkv: 3C
    size_t token;  // the sequence's first row
    int column;    // the head's first channel
    uint64_t row0; // number of its first row of probabilities
    float scale;   // 1 / sqrt(D)
    struct mask mask;
};

// The head that blockIdx.y names.
__device__ inline head this_head(const struct cuda_attention &a)
{
    head h;
    int bh = (int)blockIdx.y;
    h.T = a.T;
    h.D = a.C / a.NH;
    h.C = a.C;
    h.stride = 3 * (size_t)a.C;
    h.token = (size_t)(bh / a.NH) * a.T;
    h.column = bh % a.NH * h.D;
    h.row0 = (uint64_t)bh * a.T;
    h.scale = rsqrtf((float)h.D);
    h.mask = a.mask;
    return h;
}

// tile (rows, DP) = rows of D numbers `stride` apart, of which `valid` exist;
// zeros elsewhere. All threads of the block.
template <typename T, int DP>
__device__ void load_tile(T *tile, const T *in, size_t stride, int rows,
                          int valid, int D)
{
    constexpr int WIDE = 16 / sizeof(T), LD = TILE_LD<DP>;
    if (D % WIDE == 0) { // rows begin at multiples of 16 bytes
        for (int i = (int)threadIdx.x; i < rows * (DP / WIDE);
             i += ATT_THREADS) {
            int r = i / (DP / WIDE), c = i % (DP / WIDE) * WIDE;
            int4 v = make_int4(0, 0, 0, 0);
            if (r < valid && c < D)
                v = *reinterpret_cast<const int4 *>(in + r * stride + c);
            *reinterpret_cast<int4 *>(tile + r * LD + c) = v;
        }
        return;
    }
    for (int i = (int)threadIdx.x; i < rows * DP; i += ATT_THREADS) {
        int r = i / DP, c = i % DP;
        tile[r * LD + c] =
            r < valid && c < D ? in[r * stride + c] : store<T>(0);
    }
}

// A warp's 16 rows of a tile as A, for all of DP.
template <typename T, int DP>
__device__ inline void load_rows(frag_a<T> a[DP / 16], const T *tile, int row0)
{
#pragma unroll
    for (int k = 0; k < DP / 16; k++)
        a[k] = load_a(tile, TILE_LD<DP>, row0, k * 16);
}

// out rows g and g + 8 = c * f0, f1, of those that exist. `row` is that of g.
template <typename T, int DP>
__device__ inline void store_rows(T *out, size_t stride, int row, int T_, int D,
                                  const frag_c c[DP / 8], float f0, float f1)
{
#pragma unroll
    for (int n = 0; n < DP / 8; n++)
        for (int k = 0; k < 4; k++) {
            int r = row + (k / 2) * 8, d = n * 8 + 2 * lane_t() + k % 2;
            if (r < T_ && d < D)
                out[(size_t)r * stride + d] =
                    store<T>(c[n].v[k] * (k < 2 ? f0 : f1));
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

// Call f with the padded size of a head as a constant.
template <int N> struct constant {
    static constexpr int value = N;
};

template <typename F> void by_head(int D, F f)
{
    if (D <= 64)
        f(constant<64>());
    else
        f(constant<128>());
}

#endif
