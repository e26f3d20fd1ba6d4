// tokens.h - arrays of tokens of 8 or 16 bits, and the token files of other
// programs: the .bin of nanoGPT and llm.c.
//
//     nanoGPT   uint16 token[n]
//     llm.c     int32 header[256]: 20240520, version 1, n; uint16 token[n]
//
// A file is such a shard if it begins with llm.c's number or if its name ends
// in .bin. Any other file is text, whose bytes are tokens of 8 bits. So both
// can stay in the mapped file: only the windows of a batch are converted to 32
// bits.

#pragma once

#include "data/token_file.h"

#include <stdbool.h>
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

// Whether the mapped file is a shard.
bool shard_is(const struct file *f, const char *path);

// The tokens in the mapping `f`, which must outlive them. 0, or -1 after
// fail(): a wrong magic number, version or length, or no tokens.
int shard_read(const struct file *f, const char *path, struct tokens *out);
