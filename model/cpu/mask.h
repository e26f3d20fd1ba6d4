// mask.h - dropout masks that are computed, never stored.
//
// A mask has a key, made from seed, step, micro-batch, layer and site
// (layers_mask()). Whether element i of row r is kept depends on (key, r, i)
// alone, so backward computes the same mask again. The cost is one 64-bit mix
// for each row and one 32-bit hash for each element, which vectorises.

#pragma once

#include "base/rng.h"
#include "model/kernels.h"

// The number of a tensor's row among the rows of all workers.
static inline uint64_t mask_place(const struct mask *m, uint64_t row)
{
    return zigzag_row(&m->place, m->row + row);
}

// The row's own 32-bit key.
static inline uint32_t mask_row(const struct mask *m, uint64_t row)
{
    return (uint32_t)(rng_key(m->key, mask_place(m, row)) >> 32);
}

// 0 if element i is dropped, 1 / (1 - rate) if it is kept.
static inline float mask_at(const struct mask *m, uint32_t row, uint32_t i)
{
    uint32_t h = i * 0x9e3779b9u ^ row;
    h = (h ^ h >> 16) * 0x7feb352du; // lowbias32's constants (C. Wellons)
    h = (h ^ h >> 15) * 0x846ca68bu;
    h ^= h >> 16;
    return h >= m->threshold ? m->keep : 0.0f;
}
