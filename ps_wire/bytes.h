// bytes.h - writes and reads the little-endian numbers of a message. put_..()
// returns the address after the number; get_..() moves *p there.

#pragma once

#include "base/half.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t *put_u16(uint8_t *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static inline uint8_t *put_u32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static inline uint8_t *put_u64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static inline uint8_t *put_f32(uint8_t *p, float v)
{
    return put_u32(p, float_bits(v));
}

static inline uint8_t *put_f64(uint8_t *p, double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return put_u64(p, u);
}

static inline uint16_t get_u16(const uint8_t **p)
{
    uint16_t v;
    memcpy(&v, *p, sizeof v);
    *p += sizeof v;
    return le16toh(v);
}

static inline uint32_t get_u32(const uint8_t **p)
{
    uint32_t v;
    memcpy(&v, *p, sizeof v);
    *p += sizeof v;
    return le32toh(v);
}

static inline uint64_t get_u64(const uint8_t **p)
{
    uint64_t v;
    memcpy(&v, *p, sizeof v);
    *p += sizeof v;
    return le64toh(v);
}

static inline float get_f32(const uint8_t **p)
{
    return bits_float(get_u32(p));
}

static inline double get_f64(const uint8_t **p)
{
    uint64_t u = get_u64(p);
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}
