// topk.c - sends the largest elements of a vector, with their indices.
//
//     message   u32 index[k], ascending;  f32 value[k];  k = ceil(density n)
//
// Of equal magnitudes the lower index is sent. The message has the elements'
// own bits, so what was sent and what was kept add up exactly (Aji and
// Heafield, EMNLP 2017, without their sampling).
//
// The bits of a float without its sign order magnitudes, with infinity and
// NaN above all numbers, so a NaN is always sent. The k-th largest is found
// without sorting: a histogram of the upper bits says in which bin it is, and
// only what reaches that bin is looked at again.
//
//     31  30 ........ 20  19 ...... 10  9 ....... 0
//     sign  COARSE bits    then 10 bits  then 10 bits

#include "squeeze/squeeze.h"

#include "base/base.h"
#include "base/half.h"

#include <math.h>

enum {
    COARSE_SHIFT = 20,
    COARSE = 1 << 11, // bins
    FINE_BITS = 10,
    FINE = 1 << FINE_BITS,
    ENTRY = sizeof(uint32_t) + sizeof(float), // bytes
    TABLES = 4, // neighbours often share a bin, and must not wait for it
};

size_t squeeze_entries(const struct sync_settings *s, size_t n)
{
    size_t k = (size_t)ceil(s->density * (double)n);
    return k < n ? k : n;
}

static size_t topk_bytes(const struct sync_settings *s, size_t n)
{
    return squeeze_entries(s, n) * ENTRY;
}

static size_t topk_scratch(size_t n)
{
    return n * sizeof(uint32_t);
}

static uint32_t magnitude(float x)
{
    return float_bits(x) & 0x7fffffff;
}

// Finds the bin that has the k-th largest of all counted, k > 0. Subtracts
// from *k those in higher bins.
static uint32_t find_bin(const uint32_t *count, uint32_t bins, size_t *k)
{
    uint32_t b = bins - 1;
    for (; count[b] < *k; b--)
        *k -= count[b];
    return b;
}

// The bin of the upper bits that has the k-th largest magnitude.
static uint32_t coarse_bin(const float *x, size_t n, size_t *k)
{
    uint32_t count[TABLES][COARSE] = {{0}};
    size_t i = 0;
    for (; i + TABLES <= n; i += TABLES)
        for (size_t t = 0; t < TABLES; t++)
            count[t][magnitude(x[i + t]) >> COARSE_SHIFT]++;
    for (; i < n; i++)
        count[0][magnitude(x[i]) >> COARSE_SHIFT]++;
    for (int t = 1; t < TABLES; t++)
        for (int b = 0; b < COARSE; b++)
            count[0][b] += count[t][b];
    return find_bin(count[0], COARSE, k);
}

// Lists the elements whose magnitude is at least `least`. Returns how many.
static size_t list_from(const float *x, size_t n, uint32_t least,
                        uint32_t *list)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        list[m] = (uint32_t)i;
        m += magnitude(x[i]) >= least;
    }
    return m;
}

// Among the listed elements whose upper bits are `prefix`, finds the next
// FINE_BITS bits, down to bit `shift`, of the k-th largest.
static uint32_t refine(const float *x, const uint32_t *list, size_t m,
                       uint32_t prefix, int shift, size_t *k)
{
    uint32_t count[FINE] = {0};
    for (size_t i = 0; i < m; i++) {
        uint32_t bits = magnitude(x[list[i]]) >> shift;
        if (bits >> FINE_BITS == prefix)
            count[bits % FINE]++;
    }
    return prefix << FINE_BITS | find_bin(count, FINE, k);
}

static void topk_encode(const struct sync_settings *s, uint64_t key, float *x,
                        size_t n, void *message, void *scratch)
{
    size_t k = squeeze_entries(s, n), ties = k, at = 0;
    uint32_t *index = message, *list = scratch;
    float *values = (float *)message + k;
    (void)key;
    if (k == 0)
        return;
    uint32_t bits = coarse_bin(x, n, &ties);
    size_t m = list_from(x, n, bits << COARSE_SHIFT, list);
    for (int shift = COARSE_SHIFT - FINE_BITS; shift >= 0; shift -= FINE_BITS)
        bits = refine(x, list, m, bits, shift, &ties);
    // ties: so many elements of exactly this magnitude are sent
    for (size_t i = 0; i < m; i++) {
        uint32_t have = magnitude(x[list[i]]);
        if (have < bits || (have == bits && ties-- == 0)) {
            ties += have == bits;
            continue;
        }
        index[at] = list[i];
        values[at++] = x[list[i]];
        x[list[i]] = 0;
    }
    CHECK(at == k);
}

static int add_entries(const void *message, size_t k, size_t n, float *sum)
{
    const uint32_t *index = message;
    const float *values = (const float *)message + k;
    for (size_t i = 0; i < k; i++) {
        if (index[i] >= n)
            return fail("entry %zu of %zu has index %u, of %zu elements", i, k,
                        index[i], n);
        if (i > 0 && index[i] <= index[i - 1])
            return fail("entry %zu of %zu has index %u after %u", i, k,
                        index[i], index[i - 1]);
        sum[index[i]] += values[i];
    }
    return 0;
}

static int topk_add(const struct sync_settings *s, const void *message,
                    size_t n, float *sum)
{
    return add_entries(message, squeeze_entries(s, n), n, sum);
}

void squeeze_clear_sent(const struct sync_settings *s, const void *message,
                        size_t n, float *v)
{
    const uint32_t *index = message;
    for (size_t i = 0; i < squeeze_entries(s, n); i++)
        v[index[i]] = 0;
}

size_t squeeze_put_union(const float *x, size_t n, void *message)
{
    uint32_t *index = message;
    size_t k = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        k += x[i] != 0;
    if (k * ENTRY >= n * sizeof *x)
        return 0;
    float *values = (float *)message + k;
    for (size_t i = 0; i < n; i++) {
        if (x[i] == 0)
            continue;
        index[at] = (uint32_t)i;
        values[at++] = x[i];
    }
    return k * ENTRY;
}

int squeeze_add_union(const void *message, size_t bytes, size_t n, float *sum)
{
    return bytes % ENTRY || bytes / ENTRY > n
               ? fail("%zu bytes are no entries of %zu elements", bytes, n)
               : add_entries(message, bytes / ENTRY, n, sum);
}

const struct squeeze_ops squeeze_topk = {
    .name = "topk",
    .bytes = topk_bytes,
    .scratch = topk_scratch,
    .encode = topk_encode,
    .add = topk_add,
};
