// order.h - the order in which an epoch visits its windows.
//
// A shuffled list of the windows of a large shard would take a gigabyte.
// Instead, a Feistel network (a cipher on numbers) computes the window of the
// i-th visit:
//
//     left, right = halves of i
//     6 times:  left, right = right, left ^ random(key, round, right)
//
// Each round can be undone, so two different i have different results. The
// network permutes the numbers below a power of four. While a result is not
// below n, it is the input of the network again ("cycle walking", Black and
// Rogaway, CT-RSA 2002). Any i can be computed without those before it, so
// resuming costs nothing.

#pragma once

#include "base/base.h"
#include "base/rng.h"

#include <stdint.h>

enum {
    ORDER_ROUNDS = 6,
    ORDER_STREAM = 0x6f7264,
    ORDER_RANDOM_STREAM = 0x726e64
};

// The i-th of the numbers that are drawn from 0..n-1, each by chance, with a
// seed.
static inline uint64_t order_random(uint64_t seed, uint64_t n, uint64_t i)
{
    return rng_below(rng_key(seed, ORDER_RANDOM_STREAM), i, n);
}

// Half the number of bits that a number below n needs, rounded up.
static inline int order_half_bits(uint64_t n)
{
    int bits = 0;
    while (bits < 64 && (n - 1) >> bits)
        bits++;
    return (bits + 1) / 2;
}

static inline uint64_t order_permute(uint64_t key, int half, uint64_t i)
{
    uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left = i >> half, right = i & mask;
    for (uint64_t round = 0; round < ORDER_ROUNDS; round++) {
        uint64_t mixed = left ^ (rng_u64(rng_key(key, round), right) & mask);
        left = right;
        right = mixed;
    }
    return left << half | right;
}

// The i-th of n windows (i < n) in the epoch's order: for each (seed, epoch) a
// permutation of 0..n-1.
static inline uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t n,
                                uint64_t i)
{
    CHECK(i < n);
    uint64_t key = rng_key(rng_key(seed, ORDER_STREAM), epoch);
    int half = order_half_bits(n);
    do
        i = order_permute(key, half, i);
    while (i >= n);
    return i;
}
