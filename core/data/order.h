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

#include <stdint.h>

// The i-th of the numbers that are drawn from 0..n-1, each by chance, with a
// seed.
uint64_t order_random(uint64_t seed, uint64_t n, uint64_t i);

// The i-th of n windows (i < n) in the epoch's order: for each (seed, epoch) a
// permutation of 0..n-1.
uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);
