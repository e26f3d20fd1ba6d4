// order.h - in which order an epoch visits its windows.
//
// A shuffled list of a large shard's windows would fill a gigabyte. Instead a
// Feistel network, a cipher on numbers, says where the i-th visit goes:
//
//     left, right = halves of i
//     6 times:  left, right = right, left ^ random(key, round, right)
//
// Each round can be undone, so no two i meet. It permutes a power of four; a
// number beyond the n windows is sent through again until it lands inside
// ("cycle walking", Black and Rogaway, CT-RSA 2002). Any i can be asked for
// without those before it: resuming costs nothing.

#ifndef DATA_ORDER_H
#define DATA_ORDER_H

#include <stdint.h>

// The i-th of n windows (i < n) in the epoch's order: for each (seed, epoch) a
// permutation of 0..n-1.
uint64_t order_at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

#endif
