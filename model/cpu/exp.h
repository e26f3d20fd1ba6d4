// exp.h - e^x by a polynomial, so that loops over it vectorise.
//
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r is its Taylor polynomial of degree 7
// (remainder below 6e-9), 2^n goes into the exponent's bits. Relative error
// below 3e-7 for x in [-87, 88]; below -87 the result is about 1e-38, above 88
// it stays near 1.6e38. NaN stays NaN.

#pragma once

#include "base/half.h"

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
