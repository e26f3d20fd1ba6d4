// lowrank.h - lab 14: the functions that lowrank.c defines.

#ifndef LABS_LOWRANK_H
#define LABS_LOWRANK_H

#include "labs/lab.h"

// A matrix in the gradients: element (i, j) is g[off + i * columns + j].
struct matrix {
    size_t off, rows, columns;
};

enum { LOWRANK_MATRICES = 64 };

// A training job, the same on all workers.
struct lowrank {
    size_t n;    // gradients
    size_t rank; // the most columns of P and Q
    int matrices;
    struct matrix matrix[LOWRANK_MATRICES]; // in the order of off
    // Given: v, n floats, becomes the sum of all workers' v, with the same bits
    // on all workers. Returns 0 or -1. All workers call it with the same n.
    int (*sum)(const struct lowrank *o, struct lab *l, float *v, size_t n);
};

// Makes the columns of p, (rows, rank), orthogonal: the columns come in the
// order 0, 1 .. rank-1. From each column its parts along the columns before it
// are subtracted. If what is left is longer than 1e-4 times the column's length
// before, it is divided by its length. If not, the column becomes 0. Row i of p
// is p[i * rank] and the numbers after it; rank is at most rows.
void lowrank_orthogonal(float *p, size_t rows, size_t rank);

// Does one step on a worker. Returns 0 or -1. For each matrix M of g, of which
// r = min(rank, rows, columns):
//
//     M  := gradients + error
//     P  := mean of M Q        (rows, r)     the mean of all workers' products
//     P  := orthogonal columns of P
//     Q  := mean of M^T P      (columns, r)  but where a column of P is 0, Q
//                                            keeps its column
//     g  := P Q^T              the same on all workers
//     error := M - g           this worker's own
//
// Elements of g in no matrix become the mean of all workers' elements. Their
// error is 0. error: n floats, 0 before the first step. q: the matrices Q, one
// after the other, each row by row; they are the same on all workers.
int lowrank_exchange(struct lab *l, const struct lowrank *o, float *g,
                     float *error, float *q);

#endif
