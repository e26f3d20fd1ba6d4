// mask.cuh - dropout masks on a GPU: the same functions of (key, row, column)
// as in model/cpu/mask.h and base/rng.h, so that both devices drop the same
// elements.

#pragma once

#include "model/kernels.h"

__device__ inline uint64_t mask_mix(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// The number of a tensor's row among the rows of all workers (zigzag_row()). An
// int holds it.
__device__ inline size_t mask_place(const struct mask &m, size_t row)
{
    const struct zigzag &z = m.place;
    uint32_t at = (uint32_t)(m.row + row);
    if (!z.own)
        return at;
    uint32_t own = (uint32_t)z.own, t = at % own;
    bool high = t >= (uint32_t)z.run[1].at; // an index would need the stack
    uint32_t first =
        (uint32_t)(high ? z.run[1].first - z.run[1].at : z.run[0].first);
    return at / own * (uint32_t)z.tokens + first + t;
}

// The 32-bit key of the row of that number.
__device__ inline uint32_t mask_row(const struct mask &m, uint64_t place)
{
    return (uint32_t)(mask_mix(m.key ^ 0xd1b54a32d192ed03u, place) >> 32);
}

// 0 if element i is dropped, 1 / (1 - rate) if it is kept.
__device__ inline float mask_at(const struct mask &m, uint32_t row, uint32_t i)
{
    uint32_t h = i * 0x9e3779b9u ^ row;
    h = (h ^ h >> 16) * 0x7feb352du;
    h = (h ^ h >> 15) * 0x846ca68bu;
    h ^= h >> 16;
    return h >= m.threshold ? m.keep : 0.0f;
}
