// sign.c - sends the sign of every element, and one length for all of them.
//
//     message   f32 length;  for each block of 256 elements u32 word[8]: bit j
//               of word l is set if element 8 j + l of the block is negative
//     length    mean |x|
//
// Neighbours are in different words, so that vector code can shift 8 words at a
// time. An element is decoded as +length or -length; there is no zero. With
// this length the residual is never longer than x, so errors cannot pile up
// (Karimireddy et al., ICML 2019). DeepSpeed's 1-bit optimisers take
// |x|_2 / sqrt(n) instead, which is up to sqrt(n) times as long for a vector
// with few large elements. Seide et al. (Interspeech 2014) were the first.

#include "squeeze/squeeze.h"

#include "base/base.h"
#include "base/clones.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

enum { LANES = 8, WORD = 32, BLOCK = LANES * WORD };

// How far ahead the first pass asks for elements: a page of 4096 bytes, at
// whose end the processor's own prefetching stops.
enum { AHEAD = 1024 };

static size_t sign_bytes(const struct sync_settings *s, size_t n)
{
    size_t blocks = (n + BLOCK - 1) / BLOCK;
    (void)s;
    return n ? sizeof(float) + blocks * LANES * sizeof(uint32_t) : 0;
}

VECTOR_CLONES
static float mean_size(const float *x, size_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        __builtin_prefetch(&x[i + AHEAD]);
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)fabsf(x[i + l]);
    }
    for (; i < n; i++)
        lanes[0] += (double)fabsf(x[i]);
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return (float)(sum / (double)n);
}

// sum += length, with the signs of BLOCK elements.
VECTOR_CLONES
static void add_signs(const uint32_t *restrict word, float length,
                      float *restrict sum)
{
    uint32_t bits = float_bits(length);
    for (int j = 0; j < WORD; j++)
        for (int l = 0; l < LANES; l++)
            sum[LANES * j + l] += bits_float(bits ^ (word[l] >> j & 1) << 31);
}

// Takes the signs of BLOCK elements, and leaves in x what they lack.
VECTOR_CLONES
static void encode_block(float length, float *restrict x, uint32_t *restrict to)
{
    uint32_t word[LANES] = {0}, less = float_bits(-length);
    for (int j = 0; j < WORD; j++)
        for (int l = 0; l < LANES; l++) {
            uint32_t bits = float_bits(x[LANES * j + l]);
            word[l] |= bits >> 31 << j;
            x[LANES * j + l] += bits_float(less ^ (bits & 0x80000000));
        }
    memcpy(to, word, sizeof word);
}

static void sign_encode(const struct sync_settings *s, uint64_t key, float *x,
                        size_t n, void *message, void *scratch)
{
    uint32_t *to = (uint32_t *)message + 1;
    size_t rest = n % BLOCK, whole = n - rest;
    float length, last[BLOCK] = {0};
    (void)s;
    (void)key;
    (void)scratch;
    if (n == 0)
        return;
    length = mean_size(x, n);
    memcpy(message, &length, sizeof length);
    for (size_t at = 0; at < whole; at += BLOCK, to += LANES)
        encode_block(length, x + at, to);
    if (rest == 0)
        return;
    memcpy(last, x + whole, rest * sizeof *x);
    encode_block(length, last, to);
    memcpy(x + whole, last, rest * sizeof *x);
}

// Whether a block has signs of elements from `n` on.
static bool has_beyond(const uint32_t word[LANES], size_t n)
{
    for (size_t i = n; i < BLOCK; i++)
        if (word[i % LANES] >> i / LANES & 1)
            return true;
    return false;
}

static int sign_add(const struct sync_settings *s, const void *message,
                    size_t n, float *sum)
{
    const uint32_t *from = (const uint32_t *)message + 1;
    size_t rest = n % BLOCK, whole = n - rest;
    float length, last[BLOCK] = {0};
    (void)s;
    if (n == 0)
        return 0;
    memcpy(&length, message, sizeof length);
    if (length < 0)
        return fail("the length is %g", (double)length);
    for (size_t at = 0; at < whole; at += BLOCK, from += LANES)
        add_signs(from, length, sum + at);
    if (rest == 0)
        return 0;
    if (has_beyond(from, rest))
        return fail("it has signs beyond element %zu", n);
    memcpy(last, sum + whole, rest * sizeof *sum);
    add_signs(from, length, last);
    memcpy(sum + whole, last, rest * sizeof *sum);
    return 0;
}

const struct squeeze_ops squeeze_sign = {
    .name = "sign",
    .twice = true,
    .bytes = sign_bytes,
    .encode = sign_encode,
    .add = sign_add,
};
