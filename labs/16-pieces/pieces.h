// pieces.h - lab 16: the functions that pieces.c defines.

#ifndef LABS_PIECES_H
#define LABS_PIECES_H

#include "labs/lab.h"

// ---- which worker has which tokens
//
// A sequence of `tokens` tokens is cut into 2 * workers pieces, one after the
// other. `tokens` may be any number, also less than there are pieces: then some
// pieces are empty.

// Tokens first .. first+n-1 of a sequence.
struct piece {
    size_t first, n;
};

// Writes piece k of 2 * workers: it has tokens / (2 * workers) tokens, rounded
// down, and one more if k < tokens % (2 * workers).
void piece_cut(size_t tokens, int workers, int k, struct piece *p);

// Writes the numbers of a worker's two pieces: first that of a piece of the
// first half, then that of a piece of the second half. Each worker has piece
// `rank`. No two workers' scores differ by more than 2 * tokens: a token has a
// score with itself, and with each token before it.
void piece_held(int workers, int rank, int held[2]);

// ---- which scores a worker computes when

// The scores of the queries of one piece with the keys of one piece.
struct block {
    int query, key; // the pieces
    bool masked;    // they are the same piece: a query does not see later keys
};

// The keys go around a ring: in step s, from 0, worker r has the keys of worker
// r - s, or r - s + workers. Writes the blocks that worker `rank` computes in
// this step, in any order, and returns their number. A query sees the keys of
// its own token and of those before. Blocks that would have no score, because a
// piece is empty or all keys are later, are left out. `blocks` has room to
// spare.
int piece_blocks(size_t tokens, int workers, int rank, int step,
                 struct block blocks[4]);

// ---- softmax in parts

// The attention of some queries over a part of the keys: for each query, the
// largest score, the sum of e^(score - max) over the keys, and the sum of
// e^(score - max) v. A query that has seen no key has max = -INFINITY, sum = 0
// and out = 0.
struct partial {
    size_t rows, width;
    float *max, *sum; // (rows)
    float *out;       // (rows, width)
};

// *all becomes the attention over the keys of both; no key is in both. The
// rows, width and all pointers stay as they are.
void piece_merge(struct partial *all, const struct partial *one);

// Writes the attention, out (rows, width), and the natural logarithm of the sum
// of e^score over all keys, lse (rows). A query that has seen no key gets 0 and
// -INFINITY. Backward needs lse, and neither max nor sum.
void piece_finish(const struct partial *p, float *out, float *lse);

// ---- all together

struct sequence {
    size_t tokens; // of the whole sequence
    size_t width;  // numbers of a query, of a key and of a value
    size_t own;    // tokens of this worker; may be 0
};

// Computes the attention of this worker's tokens, out (own, width), and lse
// (own), from their queries, keys and values, each (own, width): first the
// tokens of its first piece, then those of its second one. The score of a query
// and a key is their scalar product divided by the root of `width`. All workers
// call it. Returns 0 or -1.
int piece_attention(struct lab *l, const struct sequence *s, const float *q,
                    const float *k, const float *v, float *out, float *lse);

#endif
