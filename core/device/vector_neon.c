// vector_neon.c - vectors of 4 floats: NEON, which every 64-bit ARM has.

#include "device/vector_isa.h"

#include <arm_neon.h>

enum { LANES = 4 };

static inline float32x4_t load(const void *src, enum dtype type, size_t i)
{
    if (type == DTYPE_F32)
        return vld1q_f32((const float *)src + i);
    uint16x4_t h = vld1_u16((const uint16_t *)src + i);
    if (type == DTYPE_F16)
        return vcvt_f32_f16(vreinterpret_f16_u16(h));
    return vreinterpretq_f32_u32(vshll_n_u16(h, 16));
}

// Rounds as vector_avx2.c's to_bf16() does.
static inline uint16x4_t to_bf16(float32x4_t v)
{
    uint32x4_t u = vreinterpretq_u32_f32(v);
    uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    uint32x4_t up = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), up, quiet), 16);
}

static inline void store(void *dst, enum dtype type, size_t i, float32x4_t v)
{
    if (type == DTYPE_F32) {
        vst1q_f32((float *)dst + i, v);
        return;
    }
    uint16x4_t h =
        type == DTYPE_F16 ? vreinterpret_u16_f16(vcvt_f16_f32(v)) : to_bf16(v);
    vst1_u16((uint16_t *)dst + i, h);
}

#define VECTOR_OPS  vector_neon
#define VECTOR_NAME "neon"
#include "device/vector_loops.h"
