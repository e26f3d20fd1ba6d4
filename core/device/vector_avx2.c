// vector_avx2.c - vectors of 8 floats: AVX2 and F16C.

#include "device/vector_isa.h"

#include <immintrin.h>

enum { LANES = 8 };

static inline __m256 load(const void *src, enum dtype type, size_t i)
{
    if (type == DTYPE_F32)
        return _mm256_loadu_ps((const float *)src + i);
    __m128i h = _mm_loadu_si128((const __m128i *)((const uint16_t *)src + i));
    if (type == DTYPE_F16)
        return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

// Rounds to nearest even: adds 0x7fff and the last bit that is kept, then drops
// the lower half. A NaN keeps its upper half and is made quiet.
static inline __m128i to_bf16(__m256 v)
{
    __m256i u = _mm256_castps_si256(v);
    __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i up =
        _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i r = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
    r = _mm256_packus_epi32(r, r);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(r, 0x08));
}

static inline void store(void *dst, enum dtype type, size_t i, __m256 v)
{
    if (type == DTYPE_F32) {
        _mm256_storeu_ps((float *)dst + i, v);
        return;
    }
    __m128i h = type == DTYPE_F16
                    ? _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)
                    : to_bf16(v);
    _mm_storeu_si128((__m128i *)((uint16_t *)dst + i), h);
}

#define VECTOR_OPS  vector_avx2
#define VECTOR_NAME "avx2"
#include "device/vector_loops.h"
