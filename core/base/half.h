// half.h - the number formats of weights, activations and messages.
//
// These functions convert single numbers and round to nearest even. Whole
// vectors are converted in device/ (device_cast_on, device_add_on), which picks
// vector code at run time.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// DTYPE_BYTE is no number: vectors of bytes are only moved.
enum dtype { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64, DTYPE_BYTE };

// A copy of a vector of floats in a narrower format. `fresh`: the function that
// last changed the vector has also written the copy.
struct half_copy {
    void *at;
    enum dtype format;
    bool fresh;
};

static inline size_t dtype_bytes(enum dtype t)
{
    return t == DTYPE_F64 ? 8 : t == DTYPE_F32 ? 4 : t == DTYPE_BYTE ? 1 : 2;
}

static inline const char *dtype_name(enum dtype t)
{
    static const char *const names[] = {"fp32", "fp16", "bf16", "fp64",
                                        "bytes"};
    return names[t];
}

static inline uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}

// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits; largest finite 65504.
static inline float f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest > 0x7c00) // NaN: made quiet, as the processor does
        return bits_float(sign | 0x7fc00000 | (rest & 0x3ff) << 13);
    if (rest == 0x7c00)
        return bits_float(sign | 0x7f800000);
    if (rest >= 0x0400) // normal: re-bias 15 to 127
        return bits_float(sign | ((rest << 13) + (112u << 23)));
    float subnormal = (float)rest * 0x1p-24f;
    return bits_float(sign | float_bits(subnormal));
}

static inline uint16_t f16_from_float(float x)
{
    uint32_t u = float_bits(x), sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u > 0x7f800000) // NaN: made quiet, with the upper bits of its payload
        return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x3ff));
    if (u >= 0x477ff000) // 65520 and above round to infinity
        return (uint16_t)(sign | 0x7c00);
    if (u < 0x38800000) { // below 2^-14: count units of 2^-24
        float magnitude = bits_float(u) + 0.5f; // [0.5, 1): ulp is 2^-24
        return (uint16_t)(sign | (float_bits(magnitude) - 0x3f000000));
    }
    u += 0xfff + (u >> 13 & 1);
    return (uint16_t)(sign | ((u - (112u << 23)) >> 13));
}

// bfloat16: the upper half of a float.
static inline float bf16_to_float(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

static inline uint16_t bf16_from_float(float x)
{
    uint32_t u = float_bits(x);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
