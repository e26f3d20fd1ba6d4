// tokens.h - a run of tokens of 8 or 16 bits, wherever they lie.
//
// Bytes are their own tokens and shards hold 16 bits a token, so both stay in
// the file's mapping; only a window at a time is widened to 32 bits.

#ifndef DATA_TOKENS_H
#define DATA_TOKENS_H

#include <stddef.h>
#include <stdint.h>

struct tokens {
    const void *at;
    size_t n;
    size_t width; // bytes a token: 1 or 2
};

// Tokens [from, from + n) as 32-bit numbers.
void tokens_copy(const struct tokens *t, size_t from, size_t n, int32_t *out);

// Tokens [from, from + n) as a run of their own.
struct tokens tokens_part(const struct tokens *t, size_t from, size_t n);

// Chain *hash over the tokens, and raise *largest to the largest of them.
void tokens_scan(const struct tokens *t, uint64_t *hash, uint32_t *largest);

#endif
