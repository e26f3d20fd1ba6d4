// tensor.cuh - products of small tiles on tensor cores: C(16x8) += A(16x16) B.
//
// The layouts are those of mma.m16n8k16 (PTX ISA, "Matrix fragments"). With g =
// lane / 4 and t = lane % 4, a lane holds, in pairs of neighbours,
//
//     A  rows g, g + 8            columns 2t, 2t + 1 and 2t + 8, 2t + 9
//     B  rows 2t, 2t+1, 2t+8, 2t+9                   column g
//     C  rows g, g + 8                               columns 2t, 2t + 1
//
// So two neighbouring tiles of C, rounded, are an A: softmax's output can be
// the factor of the next product without leaving its registers. fp32 has the
// same layout. It is multiplied as TF32 on tensor cores, where the order of k
// does not matter, or exactly, with numbers from other lanes.

#pragma once

#include "device/number.cuh"

#include <cuda_runtime.h>

// Two neighbours in one register, or in two of fp32.
template <typename T> struct pair_of {
    typedef uint32_t type;
};

template <> struct pair_of<float> {
    typedef float2 type;
};

template <typename T> struct frag_a {
    typename pair_of<T>::type v[4]; // (g, 2t) (g+8, 2t) (g, 2t+8) (g+8, 2t+8)
};

template <typename T> struct frag_b {
    typename pair_of<T>::type v[2]; // (2t, g) (2t+8, g)
};

struct frag_c {
    float v[4]; // (g, 2t) (g, 2t+1) (g+8, 2t) (g+8, 2t+1)
};

__device__ inline int lane_g()
{
    return (int)(threadIdx.x % 32 / 4);
}

__device__ inline int lane_t()
{
    return (int)(threadIdx.x % 4);
}

template <typename T>
__device__ inline typename pair_of<T>::type make_pair(float x, float y)
{
    return pack<T>(x, y);
}

template <> __device__ inline float2 make_pair<float>(float x, float y)
{
    return make_float2(x, y);
}

// 2 to the x, within two units in the last place; denormal results are 0.
__device__ inline float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// ---- asynchronous copies into shared memory

// Begins to copy 16 bytes from global memory; unless `there`, writes zeros and
// does not read `from`. This thread may read them after copy_wait(), other
// threads after a barrier that follows.
__device__ inline void copy_begin(void *shared, const void *from, bool there)
{
#if __CUDA_ARCH__ >= 800
    uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
#else
    int4 v = make_int4(0, 0, 0, 0);
    if (there)
        v = *reinterpret_cast<const int4 *>(from);
    *reinterpret_cast<int4 *>(shared) = v;
#endif
}

// The same for one number, whose address need not be a multiple of 16 bytes.
__device__ inline void copy_one(float *shared, const float *from, bool there)
{
#if __CUDA_ARCH__ >= 800
    uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :
                 : "r"(to), "l"(from), "r"(there ? 4 : 0)
                 : "memory");
#else
    *shared = there ? *from : 0;
#endif
}

// Waits until all copies that this thread began are done.
__device__ inline void copy_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

// ---- fragments from a tile in shared memory; its rows are ld numbers apart
//
// The address for a load is that of the fragment's first number plus the lane's
// offset: lane_a(), lane_b() or lane_rows(). The offset does not change in a
// loop, and the rest of the address is constant.

#if __CUDA_ARCH__ >= 750
constexpr bool LDMATRIX = true;
#else
constexpr bool LDMATRIX = false;
#endif

template <typename T> constexpr bool by_matrices = LDMATRIX && sizeof(T) == 2;

// The lane's offset for load_a().
template <typename T> __device__ inline int lane_a(int ld)
{
    int l = (int)threadIdx.x % 32;
    return by_matrices<T> ? l % 16 * ld + l / 16 * 8
                          : lane_g() * ld + 2 * lane_t();
}

// The lane's offset for load_b().
template <typename T> __device__ inline int lane_b(int ld)
{
    int l = (int)threadIdx.x % 32;
    return by_matrices<T> ? (l % 8 + l / 16 * 8) * ld + l / 8 % 2 * 8
                          : lane_g() * ld + 2 * lane_t();
}

// The lane's offset for load_b_rows().
template <typename T> __device__ inline int lane_rows(int ld)
{
    int l = (int)threadIdx.x % 32;
    return by_matrices<T> ? l % 16 * ld + l / 16 * 8
                          : 2 * lane_t() * ld + lane_g();
}

// Loads four 8x8 matrices of 16-bit numbers. Lane l gives the address of row l
// % 8 of matrix l / 8, and gets two neighbours of row g of each matrix.
// load_transposed() gives the lane two neighbours of column g.
__device__ inline void load_matrices(uint32_t v[4], const void *row)
{
#if __CUDA_ARCH__ >= 750
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
#endif
}

__device__ inline void load_transposed(uint32_t v[4], const void *row)
{
#if __CUDA_ARCH__ >= 750
    uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
#endif
}

// An A whose rows and columns are the tile's.
template <typename T> __device__ inline frag_a<T> load_a(const T *p, int ld)
{
    typedef typename pair_of<T>::type pair;
    frag_a<T> a;
    if constexpr (by_matrices<T>) {
        load_matrices(a.v, p);
    } else {
        a.v[0] = *reinterpret_cast<const pair *>(p);
        a.v[1] = *reinterpret_cast<const pair *>(p + 8 * ld);
        a.v[2] = *reinterpret_cast<const pair *>(p + 8);
        a.v[3] = *reinterpret_cast<const pair *>(p + 8 * ld + 8);
    }
    return a;
}

// Two neighbouring B along n, for a product with the transposed tile: the
// columns of b[i] are the tile's rows from 8 i on.
template <typename T>
__device__ inline void load_b(frag_b<T> b[2], const T *p, int ld)
{
    typedef typename pair_of<T>::type pair;
    if constexpr (by_matrices<T>) {
        uint32_t v[4];
        load_matrices(v, p);
        b[0] = {{v[0], v[1]}};
        b[1] = {{v[2], v[3]}};
    } else {
        for (int i = 0; i < 2; i++, p += 8 * ld) {
            b[i].v[0] = *reinterpret_cast<const pair *>(p);
            b[i].v[1] = *reinterpret_cast<const pair *>(p + 8);
        }
    }
}

// Two neighbouring B along n, for a product with the tile itself: the rows of
// b[i] are the tile's rows, and the columns of b[i] are the tile's columns from
// 8 i on.
template <typename T>
__device__ inline void load_b_rows(frag_b<T> b[2], const T *p, int ld)
{
    if constexpr (by_matrices<T>) {
        uint32_t v[4];
        load_transposed(v, p);
        b[0] = {{v[0], v[1]}};
        b[1] = {{v[2], v[3]}};
    } else {
        for (int i = 0; i < 2; i++, p += 8) {
            b[i].v[0] = make_pair<T>(load(p[0]), load(p[ld]));
            b[i].v[1] = make_pair<T>(load(p[8 * ld]), load(p[9 * ld]));
        }
    }
}

// Two neighbouring tiles of C as an A.
template <typename T>
__device__ inline frag_a<T> a_from_c(const frag_c &left, const frag_c &right)
{
    frag_a<T> a;
    a.v[0] = make_pair<T>(left.v[0], left.v[1]);
    a.v[1] = make_pair<T>(left.v[2], left.v[3]);
    a.v[2] = make_pair<T>(right.v[0], right.v[1]);
    a.v[3] = make_pair<T>(right.v[2], right.v[3]);
    return a;
}

// ---- products

// Without tensor cores: lane (g, t) needs rows g and g + 8 of A, which the
// lanes (g, 0..3) hold, and columns 2t and 2t + 1 of B, which the lanes (2t,
// 0..3) and (2t + 1, 0..3) hold.
__device__ inline float from_lane(float x, int lane)
{
    return __shfl_sync(0xffffffff, x, lane);
}

__device__ inline void add_exactly(frag_c &c, float low, float high,
                                   float column, int s)
{
    float a0 = from_lane(low, lane_g() * 4 + s);
    float a1 = from_lane(high, lane_g() * 4 + s);
    float b0 = from_lane(column, lane_t() * 8 + s);
    float b1 = from_lane(column, lane_t() * 8 + 4 + s);
    c.v[0] += a0 * b0;
    c.v[1] += a0 * b1;
    c.v[2] += a1 * b0;
    c.v[3] += a1 * b1;
}

__device__ inline float2 floats_of(float2 pair)
{
    return pair;
}

__device__ inline float2 floats_of(uint32_t pair) // of fp16
{
    return make_float2(load(__ushort_as_half((unsigned short)pair)),
                       load(__ushort_as_half((unsigned short)(pair >> 16))));
}

template <typename T>
__device__ inline void mma_exactly(frag_c &c, const frag_a<T> &a,
                                   const frag_b<T> &b)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float2 low = floats_of(a.v[2 * half]);
        float2 high = floats_of(a.v[2 * half + 1]);
        float2 column = floats_of(b.v[half]);
#pragma unroll 1 // unrolled, it takes the compiler minutes
        for (int s = 0; s < 4; s++) {
            add_exactly(c, low.x, high.x, column.x, s);
            add_exactly(c, low.y, high.y, column.y, s);
        }
    }
}

// A kind of arithmetic: the type of its numbers, and C += A B.
struct math_fp16 {
    typedef __half real;
    static __device__ void mma(frag_c &c, const frag_a<real> &a,
                               const frag_b<real> &b)
    {
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
                     : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]),
                       "r"(b.v[0]), "r"(b.v[1]));
#elif __CUDA_ARCH__ >= 750
        for (int half = 0; half < 2; half++)
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                         "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                         : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]),
                           "+f"(c.v[3])
                         : "r"(a.v[2 * half]), "r"(a.v[2 * half + 1]),
                           "r"(b.v[half]));
#else
        mma_exactly(c, a, b);
#endif
    }
};

// Needs compute capability 8.0, which model_open() checks.
struct math_bf16 {
    typedef __nv_bfloat16 real;
    static __device__ void mma(frag_c &c, const frag_a<real> &a,
                               const frag_b<real> &b)
    {
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
                     : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]),
                       "r"(b.v[0]), "r"(b.v[1]));
#else
        (void)c, (void)a, (void)b;
        __trap();
#endif
    }
};

__device__ inline uint32_t to_tf32(float x)
{
    uint32_t u = __float_as_uint(x);
#if __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(x));
#endif
    return u;
}

// C += A B, eight columns of A at a time: columns 0 to 7, then 8 to 15. Within
// eight, the instruction's order of k is not that of the layout, but it is the
// same for A and B. Needs compute capability 8.0.
struct math_tf32 {
    typedef float real;
    static __device__ void mma(frag_c &c, const frag_a<real> &a,
                               const frag_b<real> &b)
    {
#if __CUDA_ARCH__ >= 800
        for (int half = 0; half < 2; half++) {
            float2 low = a.v[2 * half], high = a.v[2 * half + 1];
            float2 column = b.v[half];
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                         "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                         "{%0, %1, %2, %3};"
                         : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]),
                           "+f"(c.v[3])
                         : "r"(to_tf32(low.x)), "r"(to_tf32(high.x)),
                           "r"(to_tf32(low.y)), "r"(to_tf32(high.y)),
                           "r"(to_tf32(column.x)), "r"(to_tf32(column.y)));
        }
#else
        (void)c, (void)a, (void)b;
        __trap();
#endif
    }
};

struct math_fp32 {
    typedef float real;
    static __device__ void mma(frag_c &c, const frag_a<real> &a,
                               const frag_b<real> &b)
    {
        mma_exactly(c, a, b);
    }
};

// Calls f with the arithmetic for the format and tf32.
template <typename F> void by_math(enum dtype format, bool tf32, F f)
{
    if (format == DTYPE_F16)
        f(math_fp16());
    else if (format == DTYPE_BF16)
        f(math_bf16());
    else if (tf32)
        f(math_tf32());
    else
        f(math_fp32());
}
