// test_layouts.c - compares the emulated mma and ldmatrix with CuTe's layouts,
// which layouts_cute.cpp prints and this test reads on standard input. CuTe
// follows the same manual as the emulation, so this checks our reading of the
// manual.

#include "tests/emulated_cuda/layouts.h"

#include "base/base.h"
#include "device/device.h"

#include <stdio.h>

#include "tests/test.h"

enum { M = 16, N = 8, K = 16, LANES = 32, MOST = LANES * 8 };

static struct device *gpu;
static void *stream;
static int *table[7], host[7][MOST]; // on the device, and on the host

static void product_of_small_integers(void **state)
{
    (void)state;
    float a[M * K], b[N * K], c[M * N], *ga, *gb, *gc;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i * 5 % 13 - 6);
    ga = device_alloc(gpu, M * K, sizeof *ga);
    gb = device_alloc(gpu, N * K, sizeof *gb);
    gc = device_alloc(gpu, M * N, sizeof *gc);
    device_copy(gpu, ga, a, sizeof a);
    device_copy(gpu, gb, b, sizeof b);
    layout_product(stream, gc, ga, gb, table[0], table[1], table[2]);
    device_copy(gpu, c, gc, sizeof c);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[m + M * k] * b[n + N * k];
            assert_true(c[m + M * n] == sum);
        }
    device_free(gpu, ga);
    device_free(gpu, gb);
    device_free(gpu, gc);
}

static void matrices(void **state)
{
    (void)state;
    unsigned out[LANES * 4], *got = device_alloc(gpu, LANES * 4, sizeof *got);
    for (int t = 0; t < 2; t++) {
        const int *to = host[4 + 2 * t];
        layout_matrices(stream, got, table[3 + 2 * t], t);
        device_copy(gpu, out, got, sizeof out);
        for (int i = 0; i < LANES * 8; i++)
            assert_int_equal(out[i / 2] >> 16 * (i % 2) & 0xffff, to[i]);
    }
    device_free(gpu, got);
}

int main(void)
{
    static const int values[7] = {8, 4, 4, 8, 8, 8, 8};
    if (device_open(&gpu, "cuda"))
        die("%s", fail_message());
    stream = device_handle(gpu, DEVICE_COMPUTE);
    for (int i = 0; i < 7; i++) {
        for (int j = 0; j < LANES * values[i]; j++)
            if (scanf("%d", &host[i][j]) != 1)
                die("layouts: standard input ends in table %d", i);
        table[i] = device_alloc(gpu, MOST, sizeof(int));
        if (!table[i])
            die("%s", fail_message());
        device_copy(gpu, table[i], host[i], sizeof host[i]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_of_small_integers),
        cmocka_unit_test(matrices),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < 7; i++)
        device_free(gpu, table[i]);
    device_close(&gpu);
    return failed;
}
