// segment.h - the passes of an update over a segment of the vector, in host
// memory.
//
//     segment_squares   block sums of the gradient, where the segment has them
//     segment_norm      their sum: RULE_LANES partial sums, each of every
//                       RULE_LANESth block, then those from the first; whoever
//                       has which segment
//     segment_update    the rule, and the params' 16-bit copy behind it
//
// A segment begins at a multiple of RULE_BLOCK and ends at one, or at the
// vector's end. params, grads and slots begin with the segment. On OpenMP's
// threads, whose number changes no bit.

#ifndef OPTIM_SEGMENT_H
#define OPTIM_SEGMENT_H

#include "optim/rule.h"

// Within a block, element i is of lane i mod RULE_LANES likewise
// (optim_sum_squares()).

// Blocks of a vector of n elements.
size_t segment_blocks(size_t n);

// sums[b] := the sum of squares of block b of the vector, for the segment's
// blocks.
void segment_squares(const float *grads, size_t off, size_t n, double *sums);

// The same, where elements that other parts count are 0; parts may be NULL.
void span_squares_of(const float *grads, size_t off, size_t n,
                     const struct norm_parts *parts, double *sums);

// The sum of all blocks of a vector.
double segment_norm(const double *sums, size_t blocks);

// Elements [off, off + n) of the vector with the gradient scale * grads; those
// of the whole in->copy, where there is one, but for its `fresh`.
void segment_update(const struct optim_config *c, float *params,
                    float *const *slots, const float *grads, size_t off,
                    size_t n, const struct rule_in *in, float scale);

#endif
