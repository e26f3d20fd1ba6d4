// power.h - matrices of low rank: PowerSGD (Vogels et al., NeurIPS 2019).
//
//     X = gradients + residual      a matrix of rows x cols numbers
//     P = sum of X Q over all workers, made orthonormal
//     Q = sum of X^T P over all workers
//     P Q^T is the sum that all workers take; residual = X - P Q^T / world
//
// Q of one step is where the next step begins (warm start), so the vectors turn
// towards those along which the gradients are longest. As in PyTorch's
// powerSGD_hook, Q is made orthonormal before it is used.
//
// P and Q are stored as `rank` vectors of rows or cols elements.

#pragma once

#include "config/settings.h"

#include <stddef.h>
#include <stdint.h>

struct power_matrix {
    size_t rows, cols;
    int rank; // 0: it travels whole
};

// A matrix of n numbers in `rows` rows, 0 if n numbers are no matrix. Its rank
// is squeeze_rank=, or 0 if P and Q would have as many numbers as the matrix.
struct power_matrix power_matrix(const struct sync_settings *s, size_t n,
                                 size_t rows);

// Elements of P and of Q.
size_t power_p(const struct power_matrix *m);
size_t power_q(const struct power_matrix *m);

// Makes `count` vectors of n >= count elements orthonormal, in their order. One
// that lies in the span of those before it becomes normal deviates of the
// stream `key` first.
void power_orthonormal(float *v, int count, size_t n, uint64_t key);

// p = x q
void power_right(const struct power_matrix *m, const float *x, const float *q,
                 float *p);
// q = x^T p
void power_left(const struct power_matrix *m, const float *x, const float *p,
                float *q);
// out = p q^T
void power_product(const struct power_matrix *m, const float *p, const float *q,
                   float *out);
