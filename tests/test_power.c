// test_power.c - vectors become orthonormal, and a matrix of low rank is the
// product of P and Q.

#include "squeeze/power.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

enum { ROWS = 37, COLS = 53, RANK = 5 };

static float dot_of(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

// Vectors become orthonormal, even if they are zero, equal, tiny or huge. They
// span what they spanned before.
static void vectors_become_orthonormal(void **state)
{
    (void)state;
    static float v[RANK * COLS], before[RANK * COLS];
    static const float sizes_of[] = {0, 1e-30f, 1, 1e30f};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < RANK * COLS; i++)
            v[i] = sizes_of[s] * (float)rng_normal(3, (uint64_t)i);
        memcpy(v + 3 * COLS, v + COLS, COLS * sizeof *v); // 3 is 1
        memcpy(before, v, sizeof v);
        power_orthonormal(v, RANK, COLS, 9);
        for (int i = 0; i < RANK; i++) {
            for (int j = 0; j <= i; j++) {
                float have = dot_of(v + i * COLS, v + j * COLS, COLS);
                assert_true(fabsf(have - (float)(i == j)) < 1e-5f);
            }
            float length =
                sqrtf(dot_of(before + i * COLS, before + i * COLS, COLS));
            double inside = 0;
            for (int j = 0; j < RANK && s == 2; j++)
                inside +=
                    pow((double)dot_of(before + i * COLS, v + j * COLS, COLS),
                        2);
            assert_true(s != 2 ||
                        fabs(sqrt(inside) / (double)length - 1) < 1e-5);
        }
    }
}

static void a_nan_stays_one(void **state)
{
    (void)state;
    static float v[RANK * COLS];
    for (int i = 0; i < RANK * COLS; i++)
        v[i] = (float)rng_normal(3, (uint64_t)i);
    v[2 * COLS + 1] = NAN;
    power_orthonormal(v, RANK, COLS, 9);
    assert_true(isnan(v[2 * COLS]));
}

// A matrix of rank 4 is the product of P and Q of rank 5, within 1e-5 of its
// length, and what is left of one of full rank is shorter than it was.
static void a_matrix_of_low_rank_is_its_product(void **state)
{
    (void)state;
    static float x[ROWS * COLS], out[ROWS * COLS];
    static float p[RANK * ROWS], q[RANK * COLS];
    const struct sync_settings set = {.squeeze_rank = RANK};
    const struct power_matrix m = power_matrix(&set, ROWS * COLS, ROWS);
    assert_int_equal(m.rank, RANK);
    for (int full = 0; full < 2; full++) {
        double length = 0, off = 0;
        for (size_t i = 0; i < ROWS * COLS; i++) {
            x[i] = full ? (float)rng_normal(5, i) : 0;
            for (size_t k = 0; k < 4; k++)
                x[i] += (float)rng_normal(k, i / COLS) *
                        (float)rng_normal(k + 10, i % COLS);
        }
        memset(q, 0, sizeof q);
        power_orthonormal(q, RANK, COLS, 1);
        power_right(&m, x, q, p);
        power_orthonormal(p, RANK, ROWS, 2);
        power_left(&m, x, p, q);
        power_product(&m, p, q, out);
        for (size_t i = 0; i < ROWS * COLS; i++) {
            length += pow((double)x[i], 2);
            off += pow((double)x[i] - (double)out[i], 2);
        }
        assert_true(full ? off < length : sqrt(off) < 1e-5 * sqrt(length));
    }
}

// P and Q are sent only if they have fewer numbers than the matrix.
static void the_rank_saves_numbers(void **state)
{
    (void)state;
    const struct sync_settings set = {.squeeze_rank = 4};
    assert_int_equal(power_matrix(&set, 64, 8).rank, 0); // 4 (8 + 8) = 64
    assert_int_equal(power_matrix(&set, 72, 8).rank, 4); // 4 (8 + 9) = 68
    assert_int_equal(power_matrix(&set, 1000, 1).rank, 0);
    assert_int_equal(power_matrix(&set, 1000, 0).rank, 0); // no matrix
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_become_orthonormal),
        cmocka_unit_test(a_nan_stays_one),
        cmocka_unit_test(a_matrix_of_low_rank_is_its_product),
        cmocka_unit_test(the_rank_saves_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
