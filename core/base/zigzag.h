// zigzag.h - how n workers divide a sequence (mesh=cpN).
//
// A sequence is cut into 2n pieces. Worker r has pieces r and 2n - 1 - r:
//
//     piece     0  1  2  3  4  5        n = 3
//     worker    0  1  2  2  1  0
//
// In causal attention a token reads all tokens before it, so the work grows
// with the position. A worker's two pieces lie equally far from the middle, so
// all workers have the same work (Brandon et al., "Striped Attention", 2023,
// describe the problem; zhuzilin/ring-flash-attention names this order zigzag).
// With one contiguous piece for each worker the last one would have 2n - 1
// times the work of the first.
//
// Workers [r, r + count) have two runs of `count` pieces together: a group of
// workers has what a worker of n / count would have.
//
// Pieces need not be equally long: of T tokens piece k has T / 2n, rounded
// down, and one more if k < T mod 2n. A worker has a token if T >= n.

#pragma once

#include <stdint.h>

enum { ZIGZAG_PIECES = 2 }; // that a worker has

// Tokens [first, first + n) of a sequence. Its worker has them as its own
// tokens [at, at + n).
struct zigzag_run {
    int first, n, at;
};

// What a worker, or a group, has of every sequence of `tokens` tokens: `own` of
// them, in two runs. All zero: the sequences are not divided.
struct zigzag {
    int tokens, own;
    struct zigzag_run run[ZIGZAG_PIECES];
};

// What worker r of n has of sequences of T tokens.
struct zigzag zigzag_of(int T, int n, int r);

// What workers [r, r + count) of n have together.
struct zigzag zigzag_group(int T, int n, int r, int count);

// The most tokens of a sequence of T that any group of `count` of n workers
// has.
int zigzag_most(int T, int n, int count);

// The position in its sequence of a worker's own token t.
static inline int zigzag_position(const struct zigzag *z, int t)
{
    const struct zigzag_run *high = &z->run[1];
    return t < high->at ? z->run[0].first + t : high->first + t - high->at;
}

// Several sequences, one after the other, are rows. Returns the number that row
// `row` of a worker has among the rows of all workers.
static inline uint64_t zigzag_row(const struct zigzag *z, uint64_t row)
{
    if (!z->own)
        return row;
    uint64_t own = (uint64_t)z->own, sequence = row / own;
    return sequence * (uint64_t)z->tokens +
           (uint64_t)zigzag_position(z, (int)(row - sequence * own));
}
