// real.h - the number format in which weights and activations are stored.
//
// kernels.c is compiled once for every storage format; REAL_FORMAT says which.
// Arithmetic is always fp32: load() widens, store() rounds to nearest even.
// Neither has a branch, so every loop that calls them vectorises.

#pragma once

#include "base/half.h"

#define REAL_FP32 0
#define REAL_BF16 1
#define REAL_FP16 2

#if REAL_FORMAT == REAL_FP32

typedef float real;

static inline float load(real x)
{
    return x;
}

static inline real store(float x)
{
    return x;
}

#elif REAL_FORMAT == REAL_BF16

typedef uint16_t real;

static inline float load(real x)
{
    return bits_float((uint32_t)x << 16);
}

static inline real store(float x)
{
    uint32_t u = float_bits(x);
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (real)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16 | 0x40) : rounded);
}

#elif defined(__aarch64__) // the compiler has the format, in vectors too

typedef uint16_t real;

static inline float load(real x)
{
    __fp16 h;
    memcpy(&h, &x, sizeof h);
    return h;
}

static inline real store(float x)
{
    __fp16 h = (__fp16)x;
    real r;
    memcpy(&r, &h, sizeof r);
    return r;
}

#else

typedef uint16_t real;

// When the bits of fraction and exponent are moved to their places in fp32,
// they stand for the value times 2^-112, even if the value is subnormal.
// Infinity and NaN get the full exponent back.
static inline float load(real x)
{
    uint32_t rest = (uint32_t)(x & 0x7fff) << 13;
    uint32_t u = float_bits(bits_float(rest) * 0x1p112f);
    u |= rest >= 0x0f800000 ? 0x7f800000 : 0;
    return bits_float(u | (uint32_t)(x & 0x8000) << 16);
}

static inline real store(float x)
{
    uint32_t u = float_bits(x), sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    uint32_t normal = (u + 0xfff + (u >> 13 & 1) - (112u << 23)) >> 13;
    uint32_t small = float_bits(bits_float(u) + 0.5f) - 0x3f000000;
    uint32_t h = u < 0x38800000 ? small : normal; // 2^-14
    h = u >= 0x477ff000 ? 0x7c00 : h;             // 65520 and above
    h = u > 0x7f800000 ? 0x7e00 : h;              // NaN stays NaN
    return (real)(sign | h);
}

#endif
