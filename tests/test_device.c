// test_device.c - compares the conversion of vectors with half.h's conversion
// of single numbers, bit by bit, and half.h with the exact values of all fp16
// numbers. Also tests shared memory and the names of devices.

#include "device/device.h"
#include "device/shared.h"
#include "device/vector.h"

#include "base/base.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { N = 70003 };

// A float of any kind: normal, subnormal, near fp16's limits, infinite, NaN.
static float any_float(uint64_t key, uint64_t i)
{
    uint64_t r = rng_u64(key, i);
    switch (r >> 61) {
    case 0:
        return bits_float((uint32_t)r);
    case 1: // around fp16's subnormals and rounding ties
        return bits_float((uint32_t)r & 0x87ffffff) + 0x1p-15f;
    case 2: // multiples of half an fp16 unit: ties
        return (float)((int)(r & 0x1fff) - 4096) * 0x1p-25f;
    case 3:
        return 65504.0f + (float)((int)(r & 63) - 16);
    case 4:
        return bits_float(0x7f800000u | ((uint32_t)r & 0x807fffffu));
    default:
        return (float)rng_normal(key, i);
    }
}

static void every_fp16_value_is_converted(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        int e = (int)(h >> 10 & 31), f = (int)(h & 1023);
        double want = e == 31  ? (f ? NAN : INFINITY)
                      : e == 0 ? ldexp(f, -24)
                               : ldexp(1024 + f, e - 25);
        float got = f16_to_float((uint16_t)h);
        if (h >> 15)
            want = -want;
        if (isnan(want)) {
            assert_true(isnan(got));
            continue;
        }
        assert_true(got == (float)want);
        assert_int_equal(f16_from_float(got), h);
    }
}

// Rounds to the nearest value, ties to even: neither neighbour is nearer.
static void fp16_rounds_to_nearest(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 200000; i++) {
        float x = any_float(1, i);
        if (isnan(x) || fabsf(x) >= 65520)
            continue;
        uint16_t h = f16_from_float(x);
        double d = fabs((double)f16_to_float(h) - x);
        double below = fabs((double)f16_to_float((uint16_t)(h - 1)) - x);
        double above = fabs((double)f16_to_float((uint16_t)(h + 1)) - x);
        if ((h & 0x7fff) != 0)
            assert_true(d < below || (d == below && !(h & 1)));
        if ((h & 0x7fff) != 0x7bff)
            assert_true(d < above || (d == above && !(h & 1)));
    }
    assert_int_equal(f16_from_float(65519.9f), 0x7bff);
    assert_int_equal(f16_from_float(65520.0f), 0x7c00);
    assert_int_equal(f16_from_float(-1e30f), 0xfc00);
}

static void bf16_rounds_to_nearest(void **state)
{
    (void)state;
    assert_int_equal(bf16_from_float(1.0f), 0x3f80);
    assert_int_equal(bf16_from_float(bits_float(0x3f808000)), 0x3f80);
    assert_int_equal(bf16_from_float(bits_float(0x3f818000)), 0x3f82);
    assert_int_equal(bf16_from_float(bits_float(0x3f808001)), 0x3f81);
    assert_true(isnan(bf16_to_float(bf16_from_float(NAN))));
    assert_true(isinf(bf16_to_float(bf16_from_float(3.4e38f))));
}

static void fill(float *x, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        x[i] = any_float(key, i);
}

static float one(float x, enum dtype t)
{
    return t == DTYPE_F16    ? f16_to_float(f16_from_float(x))
           : t == DTYPE_BF16 ? bf16_to_float(bf16_from_float(x))
                             : x;
}

static void assert_same(float got, float want)
{
    if (isnan(want)) // the bits of a sum of two NaNs are not defined
        assert_true(isnan(got));
    else
        assert_int_equal(float_bits(got), float_bits(want));
}

static void vectors_equal_single_numbers(void **state)
{
    (void)state;
    float *a = mem_alloc(N, 4), *b = mem_alloc(N, 4), *c = mem_alloc(N, 4);
    void *wire = mem_alloc(N, 4);
    assert_true(a && b && c && wire);
    fill(a, N, 2);
    fill(b, N, 3);
    for (enum dtype t = DTYPE_F32; t <= DTYPE_BF16; t++) {
        for (size_t n = 0; n <= N; n = n < 40 ? n + 1 : n * 9 + 1) {
            vector_cast(wire, t, a, DTYPE_F32, n);
            vector_cast(c, DTYPE_F32, wire, t, n);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(float_bits(c[i]), float_bits(one(a[i], t)));

            vector_add_into_wire(wire, t, b, n);
            vector_cast(c, DTYPE_F32, wire, t, n);
            for (size_t i = 0; i < n; i++)
                assert_same(c[i], one(b[i] + one(a[i], t), t));

            vector_cast_scaled(wire, t, a, 0.25f, n);
            memcpy(c, b, n * 4);
            vector_add(c, wire, t, n);
            for (size_t i = 0; i < n; i++)
                assert_same(c[i], b[i] + one(a[i] * 0.25f, t));
        }
    }
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(wire);
}

// Several vectors are added in their order. The destinations of the sum may be
// the vectors themselves.
static void several_vectors_are_added_in_order(void **state)
{
    (void)state;
    enum { MOST = 5, LEN = 1003 };
    float *v[MOST], *dst = mem_alloc(LEN, sizeof *dst), *all[MOST];
    for (int j = 0; j < MOST; j++) {
        v[j] = mem_alloc(LEN, sizeof *v[j]);
        assert_non_null(v[j]);
        fill(v[j], LEN, 10 + j);
    }
    for (int k = 1; k <= MOST; k++) {
        vector_sum(&dst, 1, (const float *const *)v, k, LEN);
        for (size_t i = 0; i < LEN; i++) {
            float want = v[0][i];
            for (int j = 1; j < k; j++)
                want += v[j][i];
            assert_same(dst[i], want);
        }
    }
    // The destinations are the sources. dst still holds the sum of all.
    for (int j = 0; j < MOST; j++)
        all[j] = v[j];
    vector_sum(all, MOST, (const float *const *)v, MOST, LEN);
    for (int j = 0; j < MOST; j++)
        for (size_t i = 0; i < LEN; i++)
            assert_same(v[j][i], dst[i]);
    for (int j = 0; j < MOST; j++)
        mem_free(v[j]);
    mem_free(dst);
}

static bool writes_and_reads(const struct shared_name *name)
{
    int *both = shared_map(name, true);
    const int *seen = shared_map(name, false);
    if (!both || !seen)
        return false;
    both[1] = seen[0] + 1;
    shared_unmap(both, name);
    shared_unmap((void *)seen, name);
    return true;
}

// Another process maps shared memory by its name alone. A wrong name maps
// nothing.
static void shared_memory_is_mapped_by_name(void **state)
{
    (void)state;
    struct device *d;
    struct shared_name name, other;
    assert_int_equal(device_open(&d, "cpu"), 0);
    int *x = device_alloc_shared(d, 3000000, sizeof *x);
    float *private = device_alloc(d, 10, sizeof *private);
    assert_non_null(x);
    assert_true(device_shared(d, x, &name));
    assert_false(device_shared(d, private, &name));
    assert_false(device_shared(d, x + 1, &name));
    assert_int_equal(x[0] | x[2999999], 0);
    x[0] = 41;
    pid_t pid = fork();
    if (pid == 0)
        _exit(writes_and_reads(&name) ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(x[1], 42);
    other = name;
    other.inode++;
    assert_null(shared_map(&other, false));
    other = name;
    other.fd = 4000;
    assert_null(shared_map(&other, false));
    device_free(d, private);
    device_free(d, x);
    assert_null(shared_map(&name, false));
    assert_null(device_alloc_shared(d, SIZE_MAX / 2, 4));
    assert_non_null(device_alloc_shared(d, 1, 1)); // the device frees it
    device_close(&d);
}

static void devices_are_opened_by_name(void **state)
{
    (void)state;
    struct device *d = NULL;
    assert_int_equal(device_open(&d, "gpu"), -1);
    assert_non_null(strstr(fail_message(), "device=gpu: this build has only"));
    assert_null(d);
    assert_int_equal(device_open(&d, "cpu"), 0);
    float *x = device_alloc(d, 100, sizeof *x), y[100];
    assert_non_null(x);
    for (int i = 0; i < 100; i++)
        y[i] = (float)i;
    device_copy(d, x, y, sizeof y);
    device_add_on(d, DEVICE_COMPUTE, x, y, DTYPE_F32, 100);
    device_finish(d);
    assert_true(x[99] == 198);
    double sum[] = {1, 2}, more[] = {0x1p-40, 3};
    device_add_on(d, DEVICE_COMPUTE, sum, more, DTYPE_F64, 2);
    assert_true(sum[0] == 1 + 0x1p-40 && sum[1] == 5);
    device_free(d, x);
    device_close(&d);
    assert_null(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fp16_value_is_converted),
        cmocka_unit_test(fp16_rounds_to_nearest),
        cmocka_unit_test(bf16_rounds_to_nearest),
        cmocka_unit_test(vectors_equal_single_numbers),
        cmocka_unit_test(several_vectors_are_added_in_order),
        cmocka_unit_test(shared_memory_is_mapped_by_name),
        cmocka_unit_test(devices_are_opened_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
