// vector_avx512.c - vectors of 16 floats: AVX-512 F and BW.

#include "device/vector_isa.h"

#include <immintrin.h>

enum { LANES = 16 };

static inline __m512 load(const void *src, enum dtype type, size_t i)
{
    if (type == DTYPE_F32)
        return _mm512_loadu_ps((const float *)src + i);
    __m256i h =
        _mm256_loadu_si256((const __m256i *)((const uint16_t *)src + i));
    if (type == DTYPE_F16)
        return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

// As in vector_avx2.c. Not vcvtneps2bf16, which flushes subnormals to zero.
static inline __m256i to_bf16(__m512 v)
{
    __m512i u = _mm512_castps_si512(v);
    __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i up =
        _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __m512i r = _mm512_mask_mov_epi32(up, nan, quiet);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16));
}

static inline void store(void *dst, enum dtype type, size_t i, __m512 v)
{
    if (type == DTYPE_F32) {
        _mm512_storeu_ps((float *)dst + i, v);
        return;
    }
    __m256i h = type == DTYPE_F16
                    ? _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)
                    : to_bf16(v);
    _mm256_storeu_si256((__m256i *)((uint16_t *)dst + i), h);
}

#define VECTOR_OPS  vector_avx512
#define VECTOR_NAME "avx512"
#include "device/vector_loops.h"
