// cuda_bf16.h - bfloat16 numbers, converted as in base/half.h. Every NaN
// becomes 0x7fff, as with NVIDIA.

#pragma once

#include "base/half.h"

struct __nv_bfloat16 {
    unsigned short bits;
};

inline float __bfloat162float(__nv_bfloat16 x)
{
    return bf16_to_float(x.bits);
}

inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    return {x == x ? bf16_from_float(x) : (unsigned short)0x7fff};
}

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x)
{
    return x.bits;
}

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
