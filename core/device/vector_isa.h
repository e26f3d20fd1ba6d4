// vector_isa.h - the loops of one instruction set, as vector.c calls them, and
// the scalar load and store for the end of a vector.

#pragma once

#include "base/half.h"

struct vector_ops {
    const char *name;
    void (*cast)(void *dst, enum dtype to, const void *src, enum dtype from,
                 size_t n);
    void (*cast_scaled)(void *dst, enum dtype to, const float *src, float scale,
                        size_t n);
    void (*add)(float *dst, const void *src, enum dtype from, size_t n);
    void (*sum)(float *const *dst, int d, const float *const *src, int k,
                size_t n);
    void (*add_into_wire)(void *wire, enum dtype type, const float *acc,
                          size_t n);
};

extern const struct vector_ops vector_scalar, vector_avx2, vector_avx512,
    vector_neon;

static inline float vector_load_one(const void *src, enum dtype type, size_t i)
{
    switch (type) {
    case DTYPE_F16:
        return f16_to_float(((const uint16_t *)src)[i]);
    case DTYPE_BF16:
        return bf16_to_float(((const uint16_t *)src)[i]);
    default:
        return ((const float *)src)[i];
    }
}

static inline void vector_store_one(void *dst, enum dtype type, size_t i,
                                    float v)
{
    switch (type) {
    case DTYPE_F16:
        ((uint16_t *)dst)[i] = f16_from_float(v);
        break;
    case DTYPE_BF16:
        ((uint16_t *)dst)[i] = bf16_from_float(v);
        break;
    default:
        ((float *)dst)[i] = v;
    }
}
