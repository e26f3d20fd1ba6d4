// rng.h - counter-based random numbers: the k-th number of a named stream.
//
// A number is a function of (key, counter). So there is no state to save, send
// or lock, and a resumed run draws the same numbers as a run without a break.
// The mixer is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): its k-th output is
// a function of seed + k * golden ratio.

#pragma once

#include <math.h>
#include <stdint.h>

// The counter-th 64-bit number of stream `key`.
static inline uint64_t rng_u64(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// The key of the stream `name` below `key`. Nest calls for (seed, rank, step,
// ..).
static inline uint64_t rng_key(uint64_t key, uint64_t name)
{
    return rng_u64(key ^ 0xd1b54a32d192ed03u, name);
}

// Uniform in [0, 1), 53 bits.
static inline double rng_uniform(uint64_t key, uint64_t counter)
{
    return (double)(rng_u64(key, counter) >> 11) * 0x1p-53;
}

// Uniform in [0, n), n > 0; the bias is below n / 2^64.
static inline uint64_t rng_below(uint64_t key, uint64_t counter, uint64_t n)
{
    __extension__ typedef unsigned __int128 wide; // not of ISO C
    return (uint64_t)((wide)rng_u64(key, counter) * n >> 64);
}

// Standard normal (Box and Muller 1958); uses counters 2c and 2c+1.
static inline double rng_normal(uint64_t key, uint64_t counter)
{
    double u = 1.0 - rng_uniform(key, 2 * counter);
    double v = rng_uniform(key, 2 * counter + 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
