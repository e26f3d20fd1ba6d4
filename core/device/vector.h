// vector.h - conversion and addition of vectors in host memory.
//
// The first call chooses the widest instructions that this processor has.
// VECTOR_ISA=scalar|avx2|avx512 in the environment forces one set (for tests
// and for comparing machines). All give the same bits. n counts elements.
// Source and destination may begin at the same address, unless a cast widens
// the numbers. Otherwise they must not overlap. No alignment is needed.

#pragma once

#include "base/half.h"

#include <stddef.h>

// dst = src, rounded to nearest even if dst is narrower.
void vector_cast(void *dst, enum dtype to, const void *src, enum dtype from,
                 size_t n);

// dst = src * scale, rounded once (the multiplication is in fp32).
void vector_cast_scaled(void *dst, enum dtype to, const float *src, float scale,
                        size_t n);

// dst += src.
void vector_add(float *dst, const void *src, enum dtype from, size_t n);

// dst += src, in doubles.
void vector_add_doubles(double *dst, const double *src, size_t n);

// Each of d vectors dst = ((src[0] + src[1]) + ...) + src[k-1], in that order,
// with k >= 1. A dst may be a source.
void vector_sum(float *const *dst, int d, const float *const *src, int k,
                size_t n);

// wire = round(acc + wire): one hop of a ring. The sum is in fp32. `acc` is
// this worker's own part, `wire` came from its left neighbour.
void vector_add_into_wire(void *wire, enum dtype type, const float *acc,
                          size_t n);
