// hash.c - a fast hash: XXH3, 64 bits, several GB/s on a core.
//
// It identifies data sets, settings and parameter vectors. It does not protect
// against forgery.

#include "base/base.h"

#include <xxhash.h>

uint64_t hash_bytes(const void *p, size_t n)
{
    return hash_more(0, p, n);
}

uint64_t hash_more(uint64_t hash, const void *p, size_t n)
{
    return XXH3_64bits_withSeed(p, n, hash);
}
