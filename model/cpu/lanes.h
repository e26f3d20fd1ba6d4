// lanes.h - vectors as wide as the processor's registers, and operations on
// them.
//
// For loads and stores of 16-bit numbers the compiler makes long shuffles, and
// a division takes 16 to 24 cycles a vector. So the loops that matter use
// `lanes`, which are LANES floats, with conversions, an exponential and a
// reciprocal. The code is plain C for any machine; intrinsics of AVX2, AVX-512
// and NEON replace what C cannot express. lanes_load_part() loads the end of a
// row that does not fill a vector. There is nothing for ARM's SVE: its vectors
// have 128 bits, as NEON's, on all processors but a few.

#pragma once

#include "model/cpu/real.h"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include <string.h>

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

// Vectors that may be at the address of any float.
typedef float lanes
    __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint32_t lanes_bits
    __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t lanes_int
    __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint16_t lanes_half
    __attribute__((vector_size(LANES * 2), aligned(2), may_alias));

static inline lanes lanes_all(float x)
{
    return x - (lanes){0};
}

// ---- the model's format

// 16 bits to 32 and back. __builtin_convertvector would convert half a vector
// at a time.
static inline lanes_bits lanes_widen(lanes_half h)
{
#if defined(__AVX512F__)
    return (lanes_bits)_mm512_cvtepu16_epi32((__m256i)h);
#elif defined(__AVX2__)
    return (lanes_bits)_mm256_cvtepu16_epi32((__m128i)h);
#else
    return __builtin_convertvector(h, lanes_bits);
#endif
}

static inline lanes_half lanes_narrow(lanes_bits u)
{
#if defined(__AVX512F__)
    return (lanes_half)_mm512_cvtepi32_epi16((__m512i)u);
#elif defined(__AVX2__)
    __m256i both = _mm256_packus_epi32((__m256i)u, (__m256i)u);
    both = _mm256_permute4x64_epi64(both, 8); // the lower half of each half
    return (lanes_half)_mm256_castsi256_si128(both);
#else
    return __builtin_convertvector(u, lanes_half);
#endif
}

static inline lanes lanes_load(const real *p)
{
#if REAL_FORMAT == REAL_FP32
    return *(const lanes *)p;
#elif REAL_FORMAT == REAL_BF16
    return (lanes)(lanes_widen(*(const lanes_half *)p) << 16);
#elif defined(__AVX512F__)
    return (lanes)_mm512_cvtph_ps((__m256i) * (const lanes_half *)p);
#elif defined(__F16C__)
    return (lanes)_mm256_cvtph_ps((__m128i) * (const lanes_half *)p);
#elif defined(__aarch64__)
    return (lanes)vcvt_f32_f16((float16x4_t) * (const lanes_half *)p);
#else
    lanes x;
    for (int i = 0; i < LANES; i++)
        x[i] = load(p[i]);
    return x;
#endif
}

// Rounds to nearest even. The bf16 instruction makes subnormal numbers zero.
static inline void lanes_store(real *p, lanes x)
{
#if REAL_FORMAT == REAL_FP32
    *(lanes *)p = x;
#elif REAL_FORMAT == REAL_BF16 && defined(__AVX512BF16__)
    __m256bh h = _mm512_cvtneps_pbh((__m512)x);
    memcpy(p, &h, sizeof h);
#elif REAL_FORMAT == REAL_BF16
    lanes_bits u = (lanes_bits)x;
    lanes_bits nan = (lanes_bits)((u & 0x7fffffff) > 0x7f800000);
    lanes_bits rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    rounded = (nan & (u >> 16 | 0x40)) | (~nan & rounded);
    *(lanes_half *)p = lanes_narrow(rounded);
#elif defined(__AVX512F__)
    *(lanes_half *)p = (lanes_half)_mm512_cvtps_ph((__m512)x, 0);
#elif defined(__F16C__)
    *(lanes_half *)p = (lanes_half)_mm256_cvtps_ph((__m256)x, 0);
#elif defined(__aarch64__)
    *(lanes_half *)p = (lanes_half)vcvt_f16_f32((float32x4_t)x);
#else
    for (int i = 0; i < LANES; i++)
        p[i] = store(x[i]);
#endif
}

// The first n < LANES numbers, and zeros.
static inline lanes lanes_load_part(const real *p, int n)
{
    real part[LANES] = {0};
    memcpy(part, p, (size_t)n * sizeof *part);
    return lanes_load(part);
}

static inline void lanes_store_part(real *p, lanes x, int n)
{
    real part[LANES];
    lanes_store(part, x);
    memcpy(p, part, (size_t)n * sizeof *part);
}

// Numbers c, c + 1, .. of a row of n. If fewer than LANES are left, zeros
// follow them.
static inline lanes lanes_get(const real *row, int c, int n)
{
    return n - c >= LANES ? lanes_load(row + c)
                          : lanes_load_part(row + c, n - c);
}

static inline void lanes_put(real *row, int c, int n, lanes x)
{
    if (n - c >= LANES)
        lanes_store(row + c, x);
    else
        lanes_store_part(row + c, x, n - c);
}

// ---- arithmetic

// x where the mask's bits are ones, and y where they are zeros.
static inline lanes lanes_where(lanes_int mask, lanes x, lanes y)
{
    return (lanes)((mask & (lanes_int)x) | (~mask & (lanes_int)y));
}

// The first n lanes of x, then those of y.
static inline lanes lanes_choose(int n, lanes x, lanes y)
{
    lanes_int index;
    for (int i = 0; i < LANES; i++)
        index[i] = i;
    return lanes_where(index < n, x, y);
}

// The larger of x and low, and the smaller of x and high; x if it is NaN.
static inline lanes lanes_at_least(lanes x, float low)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_max_ps(_mm512_set1_ps(low), (__m512)x);
#elif defined(__AVX__)
    return (lanes)_mm256_max_ps(_mm256_set1_ps(low), (__m256)x);
#else
    return lanes_where(x < low, lanes_all(low), x);
#endif
}

static inline lanes lanes_at_most(lanes x, float high)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_min_ps(_mm512_set1_ps(high), (__m512)x);
#elif defined(__AVX__)
    return (lanes)_mm256_min_ps(_mm256_set1_ps(high), (__m256)x);
#else
    return lanes_where(x > high, lanes_all(high), x);
#endif
}

static inline lanes lanes_max(lanes a, lanes b)
{
#if defined(__AVX512F__)
    return (lanes)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__)
    return (lanes)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return lanes_where(a > b, a, b);
#endif
}

// 1 / x for 2^-126 <= |x| < 2^126: an estimate r of about 12 bits or more, and
// one step of Newton's method, r (2 - x r), which doubles the number of correct
// bits. NEON's estimate has 8 bits, so it takes two steps.
static inline lanes lanes_reciprocal(lanes x)
{
#if defined(__AVX512F__)
    lanes r = (lanes)_mm512_rcp14_ps((__m512)x);
    return r * (2.0f - x * r);
#elif defined(__AVX__)
    lanes r = (lanes)_mm256_rcp_ps((__m256)x);
    return r * (2.0f - x * r);
#elif defined(__aarch64__)
    lanes r = (lanes)vrecpeq_f32((float32x4_t)x);
    r = r * (2.0f - x * r);
    return r * (2.0f - x * r);
#else
    return 1.0f / x;
#endif
}

// e^x by a polynomial, so that loops over it vectorise.
//
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r is its Taylor polynomial of degree 7
// (remainder below 6e-9), 2^n goes into the exponent's bits. Relative error
// below 3e-7 for x in [-87, 88]; below -87 the result is about 1e-38, above 88
// it stays near 1.6e38. NaN stays NaN.
static inline float exp_of(float x)
{
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
    float shifted = x * 1.44269504f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693145752f; // ln 2 in two parts: n * the first is exact
    r = r - n * 1.42860677e-6f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * bits_float((float_bits(shifted) + 127) << 23);
}

// exp_of() with x limited to [low, 88]; low >= -87.
static inline lanes lanes_exp(lanes x, float low)
{
    x = lanes_at_most(lanes_at_least(x, low), 88.0f);
    lanes shifted = x * 1.44269504f + 12582912.0f;
    lanes n = shifted - 12582912.0f;
    lanes r = x - n * 0.693145752f;
    r = r - n * 1.42860677e-6f;
    lanes p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * (lanes)(((lanes_bits)shifted + 127) << 23);
}

// The sum, in a fixed order: the upper half is added to the lower half, until
// one number is left.
static inline float lanes_sum(lanes x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)x);
#else
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            x[i] += x[i + n];
    return x[0];
#endif
}

static inline float lanes_largest(lanes x)
{
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)x);
#else
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            x[i] = x[i] > x[i + n] ? x[i] : x[i + n];
    return x[0];
#endif
}

// out = in, transposed; both are (LANES, LANES). The rows of out are ldo
// numbers apart, those of in are ldi numbers apart.
static inline void lanes_transpose(float *out, size_t ldo, const float *in,
                                   size_t ldi)
{
#if defined(__AVX512F__)
    __m512 a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_loadu_ps(in + i * ldi);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            __m512d x = (__m512d)b[i + k], y = (__m512d)b[i + k + 2];
            a[i + 2 * k] = (__m512)_mm512_unpacklo_pd(x, y);
            a[i + 2 * k + 1] = (__m512)_mm512_unpackhi_pd(x, y);
        }
        // a[4 g + c] holds, in its quarter q, column 4 q + c of rows 4 g..
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        __m512 even0 = _mm512_shuffle_f32x4(a[c], a[4 + c], 0x88);
        __m512 even1 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0x88);
        __m512 odd0 = _mm512_shuffle_f32x4(a[c], a[4 + c], 0xdd);
        __m512 odd1 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0xdd);
        float *o = out + c * ldo;
        _mm512_storeu_ps(o, _mm512_shuffle_f32x4(even0, even1, 0x88));
        _mm512_storeu_ps(o + 4 * ldo, _mm512_shuffle_f32x4(odd0, odd1, 0x88));
        _mm512_storeu_ps(o + 8 * ldo, _mm512_shuffle_f32x4(even0, even1, 0xdd));
        _mm512_storeu_ps(o + 12 * ldo, _mm512_shuffle_f32x4(odd0, odd1, 0xdd));
    }
#elif defined(__aarch64__)
    float32x4x2_t even = vzipq_f32(vld1q_f32(in), vld1q_f32(in + 2 * ldi));
    float32x4x2_t odd = vzipq_f32(vld1q_f32(in + ldi), vld1q_f32(in + 3 * ldi));
    for (int half = 0; half < 2; half++) {
        float32x4x2_t columns = vzipq_f32(even.val[half], odd.val[half]);
        vst1q_f32(out + 2 * half * ldo, columns.val[0]);
        vst1q_f32(out + (2 * half + 1) * ldo, columns.val[1]);
    }
#else
    for (int c = 0; c < LANES; c++)
        for (int r = 0; r < LANES; r++)
            out[c * ldo + r] = in[r * ldi + c];
#endif
}
