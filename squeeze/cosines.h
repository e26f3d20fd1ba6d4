// cosines.h - what moves fastest in a momentum: DeMo (Peng, Quesnelle and
// Kingma, arXiv 2411.19870; ICLR 2026).
//
// Each worker has a momentum of its own. A matrix is divided into chunks, the
// sides of which are the largest divisors up to 64 of its sides; a vector is a
// matrix of one row. In each step:
//
//     momentum = decay momentum + gradients;  Y = DCT of each chunk
//     q = the k largest of Y, k = ceil(density of the chunk); all get it
//     momentum = momentum - inverse DCT of q
//     Q = the mean of each coefficient over those workers that sent it
//     parameters -= lr (sign(inverse DCT of Q) + weight_decay parameters)
//
//     message   f32 value[chunks k];  then the index of each in its chunk,
//               ascending, in `bits` bits, the lowest first, up to a whole u32
//
// In a chunk of 64 x 64 an entry has 44 bits. The transform is DCT-II, made
// orthonormal. All sums have one order, so all workers get the same bits.

#pragma once

#include "config/settings.h"

#include <stddef.h>

struct demo_grid {
    size_t rows, cols;   // of a chunk
    size_t down, across; // chunks
    size_t k;            // coefficients of a chunk that are sent
    unsigned bits;       // of an index
};

// The chunks of a matrix of n numbers in `rows` rows, or of a vector (rows 0).
struct demo_grid demo_grid(const struct sync_settings *s, size_t n,
                           size_t rows);

// The bytes of a message: a multiple of 4.
size_t demo_bytes(const struct demo_grid *g);

// Writes the message of the momentum x, and subtracts from x what is sent. If
// an element is not finite, so is a value of the message. `scratch` has
// squeeze_demo.scratch() bytes, here and below.
void demo_encode(const struct sync_settings *s, const struct demo_grid *g,
                 float *x, void *message, void *scratch);

// 0, or -1 after fail() if demo_encode() cannot have written this message.
int demo_check(const struct demo_grid *g, const void *message);

// Decodes `count` messages, which demo_check() has passed, one behind the
// other: out becomes the signs -1, 0 or 1 of their mean, NaN where it is not
// finite.
void demo_signs(const struct demo_grid *g, const void *messages, int count,
                float *out, void *scratch);
