// tokens.c - copies and splits tokens, and computes their hash and maximum.

#include "data/tokens.h"

#include "base/base.h"

// In tokens: so few that the hash finds the block in the cache, where the pass
// for the maximum has left it.
enum { BLOCK = 1 << 18 };

void tokens_copy(const struct tokens *t, size_t from, size_t n, int32_t *out)
{
    CHECK(from <= t->n && n <= t->n - from);
    const uint8_t *narrow = t->at;
    const uint16_t *wide = t->at;
    if (t->width == 1)
        for (size_t i = 0; i < n; i++)
            out[i] = narrow[from + i];
    else
        for (size_t i = 0; i < n; i++)
            out[i] = wide[from + i];
}

struct tokens tokens_part(const struct tokens *t, size_t from, size_t n)
{
    CHECK(from <= t->n && n <= t->n - from);
    const char *at = t->at;
    return (struct tokens){at + from * t->width, n, t->width};
}

static uint32_t largest_of(const struct tokens *t)
{
    const uint8_t *narrow = t->at;
    const uint16_t *wide = t->at;
    uint32_t most = 0;
    if (t->width == 1)
        for (size_t i = 0; i < t->n; i++)
            most = narrow[i] > most ? narrow[i] : most;
    else
        for (size_t i = 0; i < t->n; i++)
            most = wide[i] > most ? wide[i] : most;
    return most;
}

void tokens_scan(const struct tokens *t, uint64_t *hash, uint32_t *largest)
{
    for (size_t from = 0; from < t->n; from += BLOCK) {
        size_t n = t->n - from < BLOCK ? t->n - from : BLOCK;
        struct tokens block = tokens_part(t, from, n);
        uint32_t most = largest_of(&block);
        *largest = most > *largest ? most : *largest;
        *hash = hash_more(*hash, block.at, n * t->width);
    }
}
