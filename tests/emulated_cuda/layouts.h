// layouts.h - a product and two loads of matrices. The caller gives tables that
// say which numbers each lane holds (test_layouts.c).

#pragma once

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// c (16, 8) = a (16, 16) b (16, 8) by one warp. a and c are column-major, b is
// row-major. Lane l holds a[at_a[8 l + i]], b[at_b[4 l + i]] and c[at_c[4 l +
// i]].
void layout_product(void *stream, float *c, const float *a, const float *b,
                    const int *at_a, const int *at_b, const int *at_c);

// Loads four 8 x 8 matrices from shared memory (ldmatrix), where each number is
// its own index. Lane l gives the address of element from[8 l], where a row
// begins. It receives four registers and writes them to out[4 l .. 4 l + 3].
void layout_matrices(void *stream, unsigned *out, const int *from,
                     bool transposed);

#ifdef __cplusplus
}
#endif
