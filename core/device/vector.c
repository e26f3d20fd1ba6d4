// vector.c - chooses the widest instructions, once. Scalar code is the
// reference.
//
// vector_loops.h has the loops, for vectors of LANES floats. vector_avx2.c,
// vector_avx512.c, vector_neon.c and this file define how such a vector is
// loaded and stored. In this file it is a single float.

#include "device/vector.h"

#include "device/vector_isa.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 1 };

static inline float load(const void *src, enum dtype type, size_t i)
{
    return vector_load_one(src, type, i);
}

static inline void store(void *dst, enum dtype type, size_t i, float v)
{
    vector_store_one(dst, type, i, v);
}

#define VECTOR_OPS  vector_scalar
#define VECTOR_NAME "scalar"
#include "device/vector_loops.h"

// The instruction sets of this processor, the narrowest first. Returns how
// many.
static int supported(const struct vector_ops *ops[3])
{
    int n = 0;
    ops[n++] = &vector_scalar;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) // such processors have F16C, too
        ops[n++] = &vector_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        ops[n++] = &vector_avx512;
#elif defined(__aarch64__)
    ops[n++] = &vector_neon;
#endif
    return n;
}

// The widest, or the one that the environment variable VECTOR_ISA names.
static const struct vector_ops *choose(void)
{
    const struct vector_ops *ops[3];
    const char *want = getenv("VECTOR_ISA");
    int n = supported(ops);
    for (int i = 0; want && i < n; i++)
        if (!strcmp(want, ops[i]->name))
            return ops[i];
    return ops[n - 1];
}

// Two threads may choose at the same time, but they choose the same: no lock is
// needed.
static const struct vector_ops *ops(void)
{
    static const struct vector_ops *chosen;
    const struct vector_ops *o = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (!o) {
        o = choose();
        __atomic_store_n(&chosen, o, __ATOMIC_RELAXED);
    }
    return o;
}

void vector_cast(void *dst, enum dtype to, const void *src, enum dtype from,
                 size_t n)
{
    if (to == from)
        memmove(dst, src, n * dtype_bytes(to));
    else
        ops()->cast(dst, to, src, from, n);
}

void vector_cast_scaled(void *dst, enum dtype to, const float *src, float scale,
                        size_t n)
{
    ops()->cast_scaled(dst, to, src, scale, n);
}

void vector_add(float *dst, const void *src, enum dtype from, size_t n)
{
    ops()->add(dst, src, from, n);
}

void vector_add_doubles(double *dst, const double *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] += src[i];
}

void vector_sum(float *const *dst, int d, const float *const *src, int k,
                size_t n)
{
    ops()->sum(dst, d, src, k, n);
}

void vector_add_into_wire(void *wire, enum dtype type, const float *acc,
                          size_t n)
{
    ops()->add_into_wire(wire, type, acc, n);
}
