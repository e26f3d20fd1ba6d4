// vector.h - conversion and addition of vectors in host memory.
//
// The widest instructions that this processor has, chosen at the first call;
// VECTOR_ISA=scalar|avx2|avx512 in the environment forces one (for tests and
// for comparing machines). All give the same bits. n counts elements; source
// and destination may be the same but must not overlap otherwise; no alignment
// is needed.

#ifndef DEVICE_VECTOR_H
#define DEVICE_VECTOR_H

#include "base/half.h"

#include <stddef.h>

// dst = src, round to nearest even where it narrows.
void vector_cast(void *dst, enum dtype to, const void *src, enum dtype from,
                 size_t n);

// dst = src * scale, rounded once (the multiplication is in fp32).
void vector_cast_scaled(void *dst, enum dtype to, const float *src, float scale,
                        size_t n);

// dst += src.
void vector_add(float *dst, const void *src, enum dtype from, size_t n);

// dst += src, in doubles.
void vector_add_doubles(double *dst, const double *src, size_t n);

// Each of d vectors dst = ((src[0] + src[1]) + ...) + src[k-1], in that order;
// k of 1 or more. A dst may be a source.
void vector_sum(float *const *dst, int d, const float *const *src, int k,
                size_t n);

// wire = round(acc + wire): one hop of a ring. The sum is in fp32; `acc` is
// this worker's own share, `wire` what came from the left.
void vector_add_into_wire(void *wire, enum dtype type, const float *acc,
                          size_t n);

// The name of the instruction set in use: "scalar", "avx2" or "avx512".
const char *vector_isa(void);

#endif
