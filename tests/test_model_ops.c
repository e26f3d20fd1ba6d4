// test_model_ops.c - compares every kernel, in every instruction set and format
// that this machine can run, with plain double precision, and every backward
// pass with central differences.

#include "base/rng.h"
#include "model/cpu/mask.h"
#include "model/cpu/product.h"
#include "tests/op_case.h"
#include "tests/reference_gpt2.h"
#include "tests/test.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static float grad[MAX], grad2[MAX], scratch[1 << 20];
static double moved[MAX];

// ---- GELU

enum { GELU_ROWS = 5, GELU_C = 103, GELU_N = GELU_ROWS * GELU_C };

static void gelu_op(void)
{
    ref_gelu(out.d, in.d, GELU_N);
}

// GELU in a kernel that also adds the bias: in.raw lacks the bias, in.d has it.
static void test_gelu_late_bias(void)
{
    draw(&bias, GELU_C, 3, 1);
    draw(&in, GELU_N, 1, 6);
    draw(&dout, GELU_N, 2, 1);
    for (int i = 0; i < GELU_N; i++)
        in.d[i] += bias.d[i % GELU_C];
    gelu_op();
    k->gelu(out.raw, in.raw, bias.raw, GELU_ROWS, GELU_C);
    near_raw("gelu, bias", out.raw, out.d, GELU_N);
    memcpy(extra.raw, dout.raw, sizeof extra.raw);
    k->gelu_backward(extra.raw, out.raw, in.raw, bias.raw, GELU_ROWS, GELU_C);
    near_raw("gelu again, bias", out.raw, out.d, GELU_N);
    near_raw("dgelu, bias", extra.raw,
             differences(gelu_op, in.d, GELU_N, GELU_N), GELU_N);
}

static void test_gelu(void)
{
    draw(&in, GELU_N, 1, 6);
    draw(&dout, GELU_N, 2, 1);
    gelu_op();
    k->gelu(out.raw, in.raw, NULL, GELU_ROWS, GELU_C);
    near_raw("gelu", out.raw, out.d, GELU_N);
    memset(out.raw, 0, sizeof out.raw);
    memcpy(extra.raw, dout.raw, sizeof extra.raw);
    k->gelu_backward(extra.raw, out.raw, in.raw, NULL, GELU_ROWS, GELU_C);
    near_raw("gelu again", out.raw, out.d, GELU_N);
    near_raw("dgelu", extra.raw, differences(gelu_op, in.d, GELU_N, GELU_N),
             GELU_N);
}

// ---- LayerNorm, with the sum of the residual before it

enum { ROWS = 7, CH = 51 };

static void norm_op(void)
{
    ref_norm(out.d, in.d, weight.d, bias.d, ROWS, CH);
}

static void test_norm(void)
{
    int n = ROWS * CH;
    float mean[ROWS], rstd[ROWS];
    draw(&in, n, 3, 2);
    draw(&weight, CH, 4, 1);
    draw(&bias, CH, 5, 1);
    draw(&dout, n, 6, 1);
    norm_op();
    k->norm(NULL, out.raw, mean, rstd, in.raw, NULL, NULL, weight.raw, bias.raw,
            ROWS, CH, &no_mask);
    near_raw("norm", out.raw, out.d, n);

    draw(&extra, n, 7, 1); // dres, to which the kernel adds
    k->norm_backward(extra.raw, true, out.raw, grad, grad + CH, false, dout.raw,
                     in.raw, mean, rstd, weight.raw, bias.raw, ROWS, CH,
                     scratch);
    near_raw("norm again", out.raw, out.d, n);
    const double *d = differences(norm_op, in.d, n, n);
    for (int i = 0; i < n; i++)
        moved[i] = d[i] + extra.d[i];
    near_raw("norm dres", extra.raw, moved, n);
    near("norm dweight", grad, differences(norm_op, weight.d, CH, n), CH);
    near("norm dbias", grad + CH, differences(norm_op, bias.d, CH, n), CH);

    memcpy(grad2, grad, sizeof grad2); // the kernel adds to dweight and dbias
    k->norm_backward(extra.raw, false, out.raw, grad, grad + CH, true, dout.raw,
                     in.raw, mean, rstd, weight.raw, bias.raw, ROWS, CH,
                     scratch);
    near_raw("norm dres replaced", extra.raw, differences(norm_op, in.d, n, n),
             n);
    for (int i = 0; i < 2 * CH; i++)
        moved[i] = 2.0 * grad2[i];
    near("norm dweight, dbias added", grad, moved, 2 * CH);
}

static void test_residual(void)
{
    int n = ROWS * CH;
    float mean[ROWS], rstd[ROWS];
    draw(&in, n, 8, 2);
    draw(&in2, n, 9, 1);
    draw(&weight, CH, 10, 1);
    draw(&bias, CH, 11, 1);
    for (int i = 0; i < n; i++)
        in.d[i] += in2.d[i] *
                   mask_at(&some_mask, mask_row(&some_mask, i / CH), i % CH);
    k->norm(extra.raw, out.raw, mean, rstd, in.raw, in2.raw, NULL, weight.raw,
            bias.raw, ROWS, CH, &some_mask);
    near_raw("residual", extra.raw, in.d, n);
    norm_op();
    near_raw("residual norm", out.raw, out.d, n);

    draw(&dout, CH, 12, 1); // the branch's bias
    for (int i = 0; i < n; i++)
        in.d[i] += dout.d[i % CH] *
                   mask_at(&some_mask, mask_row(&some_mask, i / CH), i % CH);
    k->norm(extra.raw, out.raw, mean, rstd, in.raw, in2.raw, dout.raw,
            weight.raw, bias.raw, ROWS, CH, &some_mask);
    near_raw("residual, bias", extra.raw, in.d, n);
}

// ---- loss

enum { SYMBOLS = 67 };

static const int32_t targets[ROWS] = {0, 66, 3, 5, 5, 9, 31};

static void loss_op(void)
{
    ref_loss(out.d, in.d, targets, ROWS, SYMBOLS);
}

static void test_loss(void)
{
    int n = ROWS * SYMBOLS;
    float losses[ROWS];
    for (int i = 0; i < n; i++)
        in.d[i] = in.f[i] = (float)(20 * rng_uniform(14, i) - 10);
    for (int i = 0; i < ROWS; i++)
        dout.d[i] = 1;
    loss_op();
    memcpy(in2.f, in.f, sizeof in2.f);
    k->loss(losses, NULL, in2.f, targets, ROWS, SYMBOLS, 1);
    double format = tolerance;
    tolerance = 1e-6;
    near("loss", losses, out.d, ROWS);
    tolerance = format;
    const double *d = differences(loss_op, in.d, n, ROWS);
    for (int i = 0; i < n; i++)
        in2.d[i] = d[i] * 0.25;
    k->loss(losses, extra.raw, in.f, targets, ROWS, SYMBOLS, 0.25f);
    near_raw("dlogits", extra.raw, in2.d, n);
}

// ---- embedding

enum { B = 2 };

static const int32_t words[B * 4] = {3, 0, 3, 6, 6, 3, 1, 0};

static void test_embed(void)
{
    int n = B * 4 * CH;
    draw(&weight, 7 * CH, 15, 1);
    draw(&bias, 4 * CH, 16, 1);
    draw(&dout, n, 17, 1);
    memset(in.d, 0, sizeof in.d);
    memset(in2.d, 0, sizeof in2.d);
    for (int i = 0; i < n; i++) {
        int r = i / CH, c = i % CH;
        double keep = mask_at(&some_mask, mask_row(&some_mask, r), c);
        out.d[i] =
            (weight.d[words[r] * CH + c] + bias.d[r % 4 * CH + c]) * keep;
        in.d[words[r] * CH + c] += dout.d[i] * keep;
        in2.d[r % 4 * CH + c] += dout.d[i] * keep;
    }
    k->embed(out.raw, weight.raw, bias.raw, words, (size_t)B * 4, 4, CH,
             &some_mask);
    near_raw("embed", out.raw, out.d, n);
    memset(grad, 0, sizeof grad);
    for (int i = 0; i < 4 * CH; i++)
        grad2[i] = 5; // replaced
    k->embed_backward(grad, grad2, dout.raw, words, (struct words){0, 7},
                      (size_t)B * 4, 4, CH, false, &some_mask);
    near("dwte", grad, in.d, 7 * CH);
    near("dwpe", grad2, in2.d, 4 * CH);
}

// ---- small passes

static void test_vector(void)
{
    int n = ROWS * CH;
    draw(&in, n, 18, 3);
    for (int c = 0; c < CH; c++) {
        moved[c] = 0;
        for (int r = 0; r < ROWS; r++)
            moved[c] += in.d[r * CH + c];
        grad2[c] = 1;
    }
    k->sum_rows(grad, in.raw, ROWS, CH, false, scratch);
    near("sum_rows", grad, moved, CH);
    k->sum_rows(grad2, in.raw, ROWS, CH, true, scratch);
    for (int c = 0; c < CH; c++)
        assert_true(grad2[c] == 1 + grad[c]);

    enum { TALL = 70, WIDE = 33, APART = 80 }; // whole squares and a rest
    draw(&in2, TALL * WIDE, 19, 3);
    k->transpose(out.raw, APART, in2.raw, TALL, WIDE);
    k->cast_up(grad2, out.raw, APART * WIDE);
    for (int r = 0; r < TALL; r++)
        for (int c = 0; c < WIDE; c++)
            assert_true(grad2[c * APART + r] == in2.f[r * WIDE + c]);

    k->fill_rows(grad, in.raw, ROWS, CH);
    for (int i = 0; i < n; i++)
        assert_true(grad[i] == in.f[i % CH]);

    k->mask_rows(extra.raw, in.raw, ROWS, CH, &some_mask);
    for (int i = 0; i < n; i++)
        moved[i] =
            in.d[i] * mask_at(&some_mask, mask_row(&some_mask, i / CH), i % CH);
    near_raw("mask_rows", extra.raw, moved, n);
}

// Conversion from 16 bits agrees with half.h for every number. Rounding to 16
// bits agrees for numbers around the middle between any two neighbours.
static void test_formats(void)
{
    bool half = k->format == DTYPE_F16;
    if (k->format == DTYPE_F32)
        return;
    static uint16_t all[1 << 16], back[1 << 16];
    static float wide[1 << 16];
    for (int i = 0; i < 1 << 16; i++)
        all[i] = (uint16_t)i;
    k->cast_up(wide, all, 1 << 16);
    for (int i = 0; i < 1 << 16; i++) {
        float want = half ? f16_to_float(all[i]) : bf16_to_float(all[i]);
        assert_true(wide[i] == want || (isnan(wide[i]) && isnan(want)));
    }
    for (int shift = -3; shift <= 3; shift++) {
        for (int i = 0; i < 1 << 16; i++) {
            uint32_t tie = half ? 0x1000 : 0x8000; // half of the last place
            float x = half ? f16_to_float(all[i]) : bf16_to_float(all[i]);
            wide[i] = bits_float(float_bits(x) + tie + (uint32_t)shift);
        }
        k->cast_down(back, wide, 1 << 16);
        for (int i = 0; i < 1 << 16; i++) {
            uint16_t want =
                half ? f16_from_float(wide[i]) : bf16_from_float(wide[i]);
            assert_true(back[i] == want || isnan(wide[i]));
        }
        k->settle(wide, wide, 1 << 16, false);
        for (int i = 0; i < 1 << 16; i++) {
            float want = half ? f16_to_float(back[i]) : bf16_to_float(back[i]);
            assert_true(wide[i] == want || isnan(want));
        }
    }
}

// A mask drops the wanted share of all elements. Another key gives another
// mask.
static void masks_drop_the_wanted_share(void **state)
{
    (void)state;
    int dropped = 0, same = 0, n = 100000;
    struct mask other = some_mask;
    other.key++;
    for (int i = 0; i < n; i++) {
        uint32_t row = mask_row(&some_mask, i / 100);
        float m = mask_at(&some_mask, row, i % 100);
        dropped += m == 0;
        same += m == mask_at(&other, mask_row(&other, i / 100), i % 100);
        assert_true(m == 0 || m == some_mask.keep);
    }
    assert_true(abs(dropped - n * 3 / 8) < 800); // 5 sigma
    assert_true(abs(same - n * (9 + 25) / 64) < 800);
}

// ---- products

// The product of a weight's gradient, over more rows than are transposed at a
// time. The first product replaces `out`, the second adds to it.
static void products_of_transposed_rows_are_right(void **state)
{
    (void)state;
    enum { M = 21, N = 17, K = 2 * PRODUCT_DEPTH + 76 };
    static float turned[M * PRODUCT_APART];
    struct product_scratch scratches = {.transposed = turned,
                                        .transposed_rows = M};
    struct product *p;
    k = kernels_find(DTYPE_F32);
    tolerance = 2e-6;
    draw(&in, K * M, 20, 1);
    draw(&in2, K * N, 21, 1);
    assert_int_equal(product_open(&p, k, &scratches), 0);
    for (int add = 0; add < 2; add++) {
        for (int i = 0; i < M * N; i++) {
            double sum = 0;
            for (int r = 0; r < K; r++)
                sum += in.d[r * M + i / N] * in2.d[r * N + i % N];
            moved[i] = add ? 2 * sum : sum;
        }
        struct product_job j = {.m = M,
                                .n = N,
                                .k = K,
                                .ta = true,
                                .a = in.f,
                                .b = in2.f,
                                .out = grad,
                                .out_fp32 = true,
                                .add = add};
        product_run(p, &j);
        near("turned product", grad, moved, M * N);
    }
    product_close(&p);
}

// Odd widths: AMX multiplies bf16 in pairs.
static void odd_product(int m, int n, int depth, bool tb)
{
    static float wide_a[1 << 14], wide_b[1 << 14], wide_out[1 << 14];
    struct product_scratch scratches = {wide_a, wide_b, wide_out, NULL, 0};
    struct product *p;
    draw(&in, m * depth, 22, 1);
    draw(&in2, depth * n, 23, 1);
    for (int i = 0; i < m * n; i++) {
        moved[i] = 0;
        for (int r = 0; r < depth; r++)
            moved[i] += in.d[i / n * depth + r] *
                        in2.d[tb ? i % n * depth + r : r * n + i % n];
    }
    struct product_job j = {.m = m,
                            .n = n,
                            .k = depth,
                            .tb = tb,
                            .a = in.raw,
                            .b = in2.raw,
                            .out = grad,
                            .out_fp32 = true};
    assert_int_equal(product_open(&p, k, &scratches), 0);
    product_run(p, &j);
    near("odd product", grad, moved, m * n);
    product_close(&p);
}

static void products_of_odd_widths_are_right(void **state)
{
    (void)state;
    k = kernels_find(DTYPE_BF16);
    tolerance = 2e-6;
    for (int threads = 1; threads < 4; threads++) {
        omp_set_num_threads(threads);
        for (int tb = 0; tb < 2; tb++) {
            odd_product(33, 21, 63, tb);
            odd_product(1, 5, 1, tb);
            odd_product(17, 40, 35, tb);
            odd_product(40, 24, 97, tb);
        }
    }
    omp_set_num_threads(2);
}

// ---- all of it, for every table

static void test_operations(void)
{
    test_formats();
    test_gelu();
    test_gelu_late_bias();
    test_norm();
    test_residual();
    test_loss();
    test_embed();
    test_vector();
}

static void every_table_computes_every_operation(void **state)
{
    (void)state;
    for_all_tables(test_operations);
}

// MODEL_ISA forces an instruction set. An unknown one is an error.
static void an_instruction_set_can_be_forced(void **state)
{
    (void)state;
    setenv("MODEL_ISA", "baseline", 1);
    assert_string_equal(kernels_find(DTYPE_F32)->isa, "baseline");
    setenv("MODEL_ISA", "v9", 1);
    assert_null(kernels_find(DTYPE_F32));
    unsetenv("MODEL_ISA");
    assert_non_null(kernels_find(DTYPE_F32));
}

int main(void)
{
    omp_set_num_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_computes_every_operation),
        cmocka_unit_test(products_of_transposed_rows_are_right),
        cmocka_unit_test(products_of_odd_widths_are_right),
        cmocka_unit_test(masks_drop_the_wanted_share),
        cmocka_unit_test(an_instruction_set_can_be_forced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
