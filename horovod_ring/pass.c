// pass.c - loops over several members' vectors, all in memory that this member
// can read.
//
// Blocks stay in the first-level cache. Several threads are used for long
// vectors only: starting them takes as long as summing a short vector.

#include "horovod_ring/pass.h"

#include "base/base.h"
#include "device/vector.h"

#include <string.h>

enum { PIECE = 4 * PASS_BLOCK }; // elements that a thread takes at a time

// As ring_wire.h describes: numbers are scaled, and each sum of two is rounded.
static void sum_half(const struct group_vector *v, char *const *dst, int d,
                     const char *const *src, int k, size_t n)
{
    float scaled[PASS_BLOCK];
    uint16_t half[PASS_BLOCK];
    vector_cast_scaled(half, v->wire, (const float *)src[0], v->scale, n);
    for (int j = 1; j < k; j++) {
        vector_cast_scaled(scaled, DTYPE_F32, (const float *)src[j], v->scale,
                           n);
        vector_add_into_wire(half, v->wire, scaled, n);
    }
    for (int j = 0; j < d; j++)
        vector_cast(dst[j], DTYPE_F32, half, v->wire, n);
}

static void sum_doubles(char *const *dst, int d, const char *const *src, int k,
                        size_t n)
{
    double sum[PASS_BLOCK];
    memcpy(sum, src[0], n * sizeof *sum);
    for (int j = 1; j < k; j++)
        vector_add_doubles(sum, (const double *)src[j], n);
    for (int j = 0; j < d; j++)
        memcpy(dst[j], sum, n * sizeof *sum);
}

void pass_sum_block(const struct group_vector *v, char *const *dst, int d,
                    const char *const *src, int k, size_t n)
{
    if (group_casts(v))
        sum_half(v, dst, d, src, k, n);
    else if (v->type == DTYPE_F64)
        sum_doubles(dst, d, src, k, n);
    else
        vector_sum((float *const *)dst, d, (const float *const *)src, k, n);
}

// Sums the n elements from element i on.
static void sum_part(const struct group_vector *v, char *const *dst, int d,
                     const char *const *src, int k, size_t i, size_t n)
{
    char *to[PASS_WORLD];
    const char *from[PASS_WORLD];
    size_t skip = i * dtype_bytes(v->type);
    for (int j = 0; j < d; j++)
        to[j] = dst[j] + skip;
    for (int j = 0; j < k; j++)
        from[j] = src[j] + skip;
    pass_sum_block(v, to, d, from, k, n);
}

void pass_sum(const struct group_vector *v, char *const *dst, int d,
              const char *const *src, int k, size_t n)
{
    CHECK(d <= PASS_WORLD && k <= PASS_WORLD);
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += PASS_BLOCK)
        sum_part(v, dst, d, src, k, i, n - i < PASS_BLOCK ? n - i : PASS_BLOCK);
}

void pass_copy(const struct group_vector *v, char *dst, const char *src,
               size_t n)
{
    size_t size = dtype_bytes(v->type);
    if (n <= PASS_BLOCK) {
        memcpy(dst, src, n * size);
        return;
    }
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += PIECE)
        memcpy(dst + i * size, src + i * size,
               (n - i < PIECE ? n - i : PIECE) * size);
}

void pass_round(const struct group_vector *v, char *at, size_t n)
{
    if (!group_casts(v))
        return;
#pragma omp parallel for if (n > 2 * PIECE) schedule(static)
    for (size_t i = 0; i < n; i += PASS_BLOCK) {
        uint16_t half[PASS_BLOCK];
        float *block = (float *)at + i;
        size_t len = n - i < PASS_BLOCK ? n - i : PASS_BLOCK;
        vector_cast(half, v->wire, block, DTYPE_F32, len);
        vector_cast(block, DTYPE_F32, half, v->wire, len);
    }
}
