// tokens.h - an array of tokens of 8 or 16 bits.
//
// The bytes of a text are tokens of 8 bits, and shards hold tokens of 16 bits.
// So both can stay in the mapped file. Only the windows of a batch are
// converted to 32 bits.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct tokens {
    const void *at; // borrowed
    size_t n;
    size_t width; // bytes of a token: 1 or 2
};

// Copies tokens [from, from + n) to out[n] as 32-bit numbers.
void tokens_copy(const struct tokens *t, size_t from, size_t n, int32_t *out);

// Tokens [from, from + n) as an array, which borrows the memory of *t.
struct tokens tokens_part(const struct tokens *t, size_t from, size_t n);

// Continues *hash over the tokens, and raises *largest to the largest of them.
void tokens_scan(const struct tokens *t, uint64_t *hash, uint32_t *largest);
