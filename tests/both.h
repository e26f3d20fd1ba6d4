// both.h - a tensor in the memory of the CPU and in a GPU's, for tests that
// compare the two.

#pragma once

#include "base/base.h"
#include "base/rng.h"
#include "device/device.h"
#include "device/vector.h"
#include "model/kernels.h"

#include <math.h>

#include "tests/test.h"

static struct device *gpu;

static const enum dtype formats[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16};

enum { FORMATS = 3 };

static inline double tolerance(enum dtype t)
{
    return t == DTYPE_F32 ? 1e-4 : t == DTYPE_F16 ? 4e-3 : 3e-2;
}

struct both {
    enum dtype type;
    size_t n;
    void *cpu, *gpu;
};

static inline struct both both_zeros(enum dtype t, size_t n)
{
    struct both b = {t, n, mem_alloc(n, dtype_bytes(t)),
                     device_alloc(gpu, n, dtype_bytes(t))};
    assert_true(b.cpu && b.gpu);
    return b;
}

static inline void send(struct both *b)
{
    device_copy(gpu, b->gpu, b->cpu, b->n * dtype_bytes(b->type));
}

// Normal deviates of standard deviation `size`.
static inline struct both both_random(enum dtype t, size_t n, uint64_t key,
                                      double size)
{
    struct both b = both_zeros(t, n);
    float *x = mem_alloc(n, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(size * rng_normal(key, i));
    vector_cast(b.cpu, t, x, DTYPE_F32, n);
    mem_free(x);
    send(&b);
    return b;
}

static inline void both_free(struct both *b)
{
    mem_free(b->cpu);
    device_free(gpu, b->gpu);
}

static inline void assert_close(const char *what, const struct both *b,
                                double tol)
{
    size_t bytes = b->n * dtype_bytes(b->type);
    char *back = mem_alloc(bytes, 1);
    float *got = mem_alloc(b->n, sizeof *got);
    float *want = mem_alloc(b->n, sizeof *want);
    double square = 0;
    assert_true(back && got && want);
    device_copy(gpu, back, b->gpu, bytes);
    vector_cast(got, DTYPE_F32, back, b->type, b->n);
    vector_cast(want, DTYPE_F32, b->cpu, b->type, b->n);
    for (size_t i = 0; i < b->n; i++)
        square += (double)want[i] * want[i];
    double rms = sqrt(square / (double)b->n);
    for (size_t i = 0; i < b->n; i++) {
        double off = fabs((double)got[i] - want[i]);
        if (!(off <= tol * (fabs((double)want[i]) + rms)))
            print_message("%s, %s: element %zu of %zu is %g, on the CPU %g "
                          "(rms %g)\n",
                          what, dtype_name(b->type), i, b->n, (double)got[i],
                          (double)want[i], rms);
        assert_true(off <= tol * (fabs((double)want[i]) + rms));
    }
    mem_free(back);
    mem_free(got);
    mem_free(want);
}

static inline void assert_same(const struct both *b)
{
    size_t bytes = b->n * dtype_bytes(b->type);
    char *back = mem_alloc(bytes, 1);
    assert_non_null(back);
    device_copy(gpu, back, b->gpu, bytes);
    assert_memory_equal(back, b->cpu, bytes);
    mem_free(back);
}

static inline struct mask mask_of(double rate)
{
    return (struct mask){.key = 99,
                         .threshold = (uint32_t)(rate * 0x1p32),
                         .keep = (float)(1 / (1 - rate))};
}
