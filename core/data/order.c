// order.c - a random permutation that is computed, not stored.

#include "data/order.h"

#include "base/base.h"
#include "base/rng.h"

enum { ROUNDS = 6, ORDER_STREAM = 0x6f7264, RANDOM_STREAM = 0x726e64 };

uint64_t order_random(uint64_t seed, uint64_t n, uint64_t i)
{
    return rng_below(rng_key(seed, RANDOM_STREAM), i, n);
}

// Half the number of bits that a number below n needs, rounded up.
static int half_bits(uint64_t n)
{
    int bits = 0;
    while (bits < 64 && (n - 1) >> bits)
        bits++;
    return (bits + 1) / 2;
}

static uint64_t permute(uint64_t key, int half, uint64_t i)
{
    uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left = i >> half, right = i & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t mixed = left ^ (rng_u64(rng_key(key, round), right) & mask);
        left = right;
        right = mixed;
    }
    return left << half | right;
}

uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
    CHECK(i < n);
    uint64_t key = rng_key(rng_key(seed, ORDER_STREAM), epoch);
    int half = half_bits(n);
    do
        i = permute(key, half, i);
    while (i >= n);
    return i;
}
