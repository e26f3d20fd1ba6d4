// segment.h - the passes of an update over a segment of the vector, in host
// memory.
//
//     segment_squares   sums of squares of the gradient, by block
//     segment_norm      the sum of all blocks: partial sum k < RULE_LANES adds
//                       blocks k, k + RULE_LANES, ..; then the partial sums
//                       are added. So the sum does not depend on the segments
//     segment_update    the rule, then the 16-bit copy of the parameters
//
// A segment begins at a multiple of RULE_BLOCK, and ends at one or at the end
// of the vector. params, grads and slots point to the first element of the
// segment. The functions use OpenMP's threads, whose number changes no bit.

#pragma once

#include "optim/rule.h"

// Within a block, element i also belongs to partial sum i mod RULE_LANES
// (optim_sum_squares()).

// The length of the piece at `at` of n elements, if pieces have `most` of them.
static inline size_t segment_piece(size_t n, size_t at, size_t most)
{
    return n - at < most ? n - at : most;
}

// The number of blocks of a vector of n elements.
size_t segment_blocks(size_t n);

// sums[b] := the sum of squares of block b of the vector, for the blocks of the
// segment [off, off + n). Elements that other parts count are left out; parts
// may be NULL.
void segment_squares(const float *grads, size_t off, size_t n,
                     const struct norm_parts *parts, double *sums);

// The sum of all blocks of a vector, from their sums of squares.
double segment_norm(const double *sums, size_t blocks);

// Updates elements [off, off + n) of the vector with the gradient scale *
// grads, and the same elements of in->copy, which is that of the whole vector
// or NULL. It does not change in->copy->fresh.
void segment_update(const struct optim_config *c, float *params,
                    float *const *slots, const float *grads, size_t off,
                    size_t n, const struct rule_in *in, float scale);
