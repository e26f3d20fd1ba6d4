// sign.c - sends the sign of every element, and one length for all of them.
//
//     message   f32 length;  u32 word[ceil(n / 32)]: bit i % 32 of word i / 32
//               is set if element i is negative
//     length    mean |x|
//
// An element is decoded as +length or -length; there is no zero. With this
// length the residual is never longer than x, so errors cannot pile up
// (Karimireddy et al., ICML 2019). DeepSpeed's 1-bit optimisers take
// |x|_2 / sqrt(n) instead, which is up to sqrt(n) times as long for a vector
// with few large elements. Seide et al. (Interspeech 2014) were the first.

#include "squeeze/squeeze.h"

#include "base/base.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

enum { WORD = 32, LANES = 16 };

static size_t words(size_t n)
{
    return (n + WORD - 1) / WORD;
}

static size_t sign_bytes(const struct sync_settings *s, size_t n)
{
    (void)s;
    return n ? sizeof(float) + words(n) * sizeof(uint32_t) : 0;
}

static float mean_size(const float *x, size_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += (double)fabsf(x[i + l]);
    for (; i < n; i++)
        lanes[0] += (double)fabsf(x[i]);
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return (float)(sum / (double)n);
}

static uint32_t signs(const float *x, size_t n)
{
    uint32_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (uint32_t)(x[i] < 0) << i;
    return word;
}

// sum += scale * the n elements of a word.
static void add_word(uint32_t word, float length, float *sum, size_t n)
{
    uint32_t bits = float_bits(length);
    for (size_t i = 0; i < n; i++)
        sum[i] += bits_float(bits ^ (word >> i & 1) << 31);
}

static void sign_encode(const struct sync_settings *s, uint64_t key, float *x,
                        size_t n, void *message, void *scratch)
{
    float length = mean_size(x, n);
    char *to = (char *)message + sizeof length;
    (void)s;
    (void)key;
    (void)scratch;
    if (n == 0)
        return;
    memcpy(message, &length, sizeof length);
    for (size_t at = 0; at < n; at += WORD) {
        size_t len = n - at < WORD ? n - at : WORD;
        uint32_t word = signs(x + at, len);
        memcpy(to, &word, sizeof word);
        to += sizeof word;
        add_word(word, -length, x + at, len);
    }
}

static int sign_add(const struct sync_settings *s, const void *message,
                    size_t n, float *sum)
{
    const char *from = (const char *)message + sizeof(float);
    float length;
    (void)s;
    if (n == 0)
        return 0;
    memcpy(&length, message, sizeof length);
    if (length < 0)
        return fail("the length is %g", (double)length);
    for (size_t at = 0; at < n; at += WORD) {
        size_t len = n - at < WORD ? n - at : WORD;
        uint32_t word;
        memcpy(&word, from, sizeof word);
        from += sizeof word;
        if (len < WORD && word >> len)
            return fail("word %zu has signs beyond element %zu", at / WORD, n);
        add_word(word, length, sum + at, len);
    }
    return 0;
}

const struct squeeze_ops squeeze_sign = {
    .name = "sign",
    .twice = true,
    .bytes = sign_bytes,
    .encode = sign_encode,
    .add = sign_add,
};
