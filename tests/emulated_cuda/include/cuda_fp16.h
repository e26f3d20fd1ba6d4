// cuda_fp16.h - half-precision numbers, converted as in base/half.h. Every NaN
// becomes 0x7fff, as with NVIDIA.

#pragma once

#include "base/half.h"

struct __half {
    unsigned short bits;
};

inline float __half2float(__half x)
{
    return f16_to_float(x.bits);
}

inline __half __float2half_rn(float x)
{
    return {x == x ? f16_from_float(x) : (unsigned short)0x7fff};
}

inline unsigned short __half_as_ushort(__half x)
{
    return x.bits;
}

inline __half __ushort_as_half(unsigned short bits)
{
    return {bits};
}

struct alignas(4) __half2 {
    __half x, y;
};

inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}
