// randomk.c - sends density= of the elements, one of each stretch, at random. A
// complete compressor of a user's own (docs/first_hour.md).
//
//     message   u64 key;  f32 value[k], k = ceil(density n)
//
// The key says which elements: a message needs no indices, so it is half as
// long as one of topk. Both ends draw the same numbers from it.

#include "squeeze/squeeze.h"

#include "base/rng.h"

#include <string.h>

static size_t randomk_bytes(const struct sync_settings *s, size_t n)
{
    return n ? sizeof(uint64_t) + squeeze_entries(s, n) * sizeof(float) : 0;
}

// Element number i of k: one of [i n / k, (i + 1) n / k).
static size_t element(uint64_t key, size_t i, size_t k, size_t n)
{
    size_t from = i * n / k, to = (i + 1) * n / k;
    return from + rng_below(key, i, to - from);
}

static void randomk_encode(const struct sync_settings *s, uint64_t key,
                           float *x, size_t n, void *message, void *scratch)
{
    size_t k = squeeze_entries(s, n);
    char *to = message;
    (void)scratch;
    if (n == 0)
        return;
    memcpy(to, &key, sizeof key);
    for (size_t i = 0; i < k; i++) {
        float *at = &x[element(key, i, k, n)];
        memcpy(to + sizeof key + i * sizeof *at, at, sizeof *at);
        *at = 0; // what is sent is not left
    }
}

// Every message of the right length is one that encode() could have written.
static int randomk_add(const struct sync_settings *s, const void *message,
                       size_t n, float *sum)
{
    size_t k = squeeze_entries(s, n);
    const char *from = message;
    uint64_t key;
    if (n == 0)
        return 0;
    memcpy(&key, from, sizeof key);
    for (size_t i = 0; i < k; i++) {
        float value;
        memcpy(&value, from + sizeof key + i * sizeof value, sizeof value);
        sum[element(key, i, k, n)] += value;
    }
    return 0;
}

const struct squeeze_ops squeeze_randomk = {
    .name = "randomk",
    .bytes = randomk_bytes,
    .encode = randomk_encode,
    .add = randomk_add,
};
