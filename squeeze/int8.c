// int8.c - rounds every element to one of a few levels, at random, so that the
// mean of many roundings is the element: QSGD (Alistarh et al., NIPS 2017).
//
//     message   for each block of 128 elements: f32 unit, then i8 level[128]
//               (fewer in the last block, padded to a multiple of 4)
//     unit      |block|_2 / levels
//     level     x / unit, rounded up with the probability of its fraction
//
// An element is decoded as unit * level. No |x| exceeds |block|_2, so a level
// is at most levels=. Element i draws 24 bits of number i / 2 of the stream.

#include "squeeze/squeeze.h"

#include "base/base.h"
#include "base/clones.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 128, LANES = 8 };

static size_t padded(size_t n)
{
    return (n + 3) / 4 * 4;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t int8_bytes(const struct sync_settings *s, size_t n)
{
    (void)s;
    return (n + BLOCK - 1) / BLOCK * sizeof(float) + padded(n);
}

// In double, so that the square of a large element does not overflow.
VECTOR_CLONES
static float norm(const float *x, size_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)x[i + l] * (double)x[i + l];
    for (; i < n; i++)
        lanes[0] += (double)x[i] * (double)x[i];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return (float)sqrt(sum);
}

// Draws 24 bits for each element of a block, from number `at` of the stream on.
static inline void draw_bits(uint64_t key, uint64_t at, uint32_t draw[BLOCK])
{
    for (int i = 0; i < BLOCK / 2; i++) {
        uint64_t both = rng_u64(key, at + (uint64_t)i);
        draw[2 * i] = (uint32_t)both >> 8;
        draw[2 * i + 1] = (uint32_t)(both >> 40);
    }
}

// Writes the levels of a block, and leaves in x what they lack.
VECTOR_CLONES
static void round_at_random(float unit, float per_unit, float levels,
                            uint64_t key, uint64_t at, float *restrict x,
                            int8_t *restrict level)
{
    uint32_t draw[BLOCK];
    draw_bits(key, at, draw);
    for (int i = 0; i < BLOCK; i++) {
        float exact = fabsf(x[i]) * per_unit, whole = (float)(int)exact;
        float up = (float)(int)draw[i] * 0x1p-24f < exact - whole ? 1 : 0;
        float size = whole + up < levels ? whole + up : levels;
        float signed_size = copysignf(size, x[i]);
        level[i] = (int8_t)(int)signed_size;
        x[i] -= unit * signed_size;
    }
}

// Writes the message of a block, and leaves in x what it lacks. x has BLOCK
// elements; those from n on are 0. A block that is not finite, or too small for
// a unit, has levels of 0. Then it stays in x, and if it is not finite, so is
// unit * 0.
static void encode_block(float levels, uint64_t key, size_t at, float *x,
                         size_t n, char *message)
{
    float length = norm(x, n), unit = length / levels;
    float per_unit = levels / length;
    int8_t *level = (int8_t *)message + sizeof unit;
    memcpy(message, &unit, sizeof unit);
    if (isfinite(per_unit) && isfinite(length))
        round_at_random(unit, per_unit, levels, key, at / 2, x, level);
    else
        memset(level, 0, BLOCK);
}

static void int8_encode(const struct sync_settings *s, uint64_t key, float *x,
                        size_t n, void *message, void *scratch)
{
    float levels = (float)s->levels, last[BLOCK] = {0};
    size_t at = 0, bytes = sizeof(float) + BLOCK;
    char *to = message, end[sizeof(float) + BLOCK];
    (void)scratch;
    for (; at + BLOCK <= n; at += BLOCK, to += bytes)
        encode_block(levels, key, at, x + at, BLOCK, to);
    if (at == n)
        return;
    memcpy(last, x + at, (n - at) * sizeof *x);
    encode_block(levels, key, at, last, n - at, end);
    memcpy(x + at, last, (n - at) * sizeof *x);
    memcpy(to, end, sizeof(float) + padded(n - at));
}

// sum += the numbers of a block. Returns the largest size of a level.
VECTOR_CLONES
static int add_levels(float unit, const int8_t *restrict level, size_t n,
                      float *restrict sum)
{
    int most = 0;
    for (size_t i = 0; i < n; i++) {
        int size = level[i] < 0 ? -level[i] : level[i];
        most = size > most ? size : most;
        sum[i] += unit * (float)level[i];
    }
    return most;
}

static int add_block(const struct sync_settings *s, const char *message,
                     size_t n, float *sum)
{
    float unit;
    memcpy(&unit, message, sizeof unit);
    if (unit < 0)
        return fail("a block's unit is %g", (double)unit);
    int most = add_levels(unit, (const int8_t *)message + sizeof unit, n, sum);
    return most <= s->levels
               ? 0
               : fail("a level is %d, with levels=%d", most, s->levels);
}

static int int8_add(const struct sync_settings *s, const void *message,
                    size_t n, float *sum)
{
    const char *from = message;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t len = least(n - at, BLOCK);
        if (add_block(s, from, len, sum + at))
            return -1;
        from += sizeof(float) + padded(len);
    }
    return 0;
}

const struct squeeze_ops squeeze_int8 = {
    .name = "int8",
    .twice = true,
    .bytes = int8_bytes,
    .encode = int8_encode,
    .add = int8_add,
};
