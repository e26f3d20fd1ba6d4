// test_demo.c - squeeze=demo: its transform keeps lengths and is its own
// inverse, it sends the largest coefficients, and takes the mean of those who
// sent one. Malformed messages are refused.

#include "squeeze/cosines.h"

#include "base/base.h"
#include "base/rng.h"
#include "config/config.h"
#include "squeeze/squeeze.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { MOST = 192 * 128, WORLDS = 4 };

// Matrices whose sides have large divisors, small ones, and none.
static const size_t shapes[][2] = {{0, 1},     {0, 64},  {0, 53},  {0, 67},
                                   {0, 384},   {1, 10},  {67, 71}, {64, 64},
                                   {192, 128}, {29, 58}, {10, 9},  {128, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static float x[MOST], left[MOST], out[MOST];

static size_t size_of(int shape)
{
    size_t rows = shapes[shape][0];
    return (rows ? rows : 1) * shapes[shape][1];
}

static struct sync_settings settings(double density)
{
    struct sync_settings s;
    settings_defaults(&s);
    s.squeeze = SQUEEZE_DEMO;
    s.density = density;
    return s;
}

static struct demo_grid grid_of(int shape, const struct sync_settings *s)
{
    return demo_grid(s, size_of(shape), shapes[shape][0]);
}

// Encodes x to *message, which has not one byte more than it needs. What is
// kept is in `left`.
static void encode(const struct demo_grid *g, const struct sync_settings *s,
                   size_t n, void *message)
{
    void *scratch = malloc(squeeze_demo.scratch(n));
    memset(message, 0x5a, demo_bytes(g));
    memcpy(left, x, n * sizeof *x);
    demo_encode(s, g, left, message, scratch);
    free(scratch);
}

static void decode(const struct demo_grid *g, const void *messages, int count)
{
    void *scratch = malloc(squeeze_demo.scratch(0));
    demo_signs(g, messages, count, out, scratch);
    free(scratch);
}

static void fill(size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(key, i);
}

static void chunks_have_the_largest_sides(void **state)
{
    (void)state;
    struct sync_settings s = settings(0.0078125);
    struct demo_grid g = demo_grid(&s, 192 * 128, 192);
    assert_int_equal(g.rows, 64);
    assert_int_equal(g.cols, 64);
    assert_int_equal(g.down * g.across, 6);
    assert_int_equal(g.k, 32);
    assert_int_equal(g.bits, 12);
    assert_int_equal(demo_bytes(&g), 6 * 32 * 44 / 8);
    g = demo_grid(&s, (size_t)50257 * 768, 50257);
    assert_int_equal(g.rows, 29);
    assert_int_equal(g.cols, 64);
    assert_int_equal(g.bits, 11);
    g = demo_grid(&s, 67, 0); // a prime: every element travels
    assert_int_equal(g.across, 67);
    assert_int_equal(demo_bytes(&g), 67 * 4);
}

// The coefficient (a, b) of a chunk of x, by the formula of DCT-II.
static double coefficient(const struct demo_grid *g, size_t at, size_t a,
                          size_t b)
{
    const double pi = acos(-1);
    size_t width = g->across * g->cols;
    double sum = 0, rows = (double)g->rows, cols = (double)g->cols;
    for (size_t i = 0; i < g->rows; i++)
        for (size_t j = 0; j < g->cols; j++)
            sum += (double)x[at + i * width + j] *
                   cos(pi * (2 * (double)i + 1) * (double)a / (2 * rows)) *
                   cos(pi * (2 * (double)j + 1) * (double)b / (2 * cols));
    return sum * sqrt((a ? 2 : 1) / rows) * sqrt((b ? 2 : 1) / cols);
}

// With all coefficients sent, values are those of the formula, their squares
// add up to those of x, and nothing is left.
static void it_is_the_orthonormal_dct(void **state)
{
    (void)state;
    struct sync_settings s = settings(1);
    for (int i = 0; i < SHAPES; i++) {
        size_t n = size_of(i);
        struct demo_grid g = grid_of(i, &s);
        float *message = malloc(demo_bytes(&g));
        double before = 0, after = 0;
        fill(n, 3);
        encode(&g, &s, n, message);
        assert_int_equal(demo_check(&g, message), 0);
        assert_int_equal(g.k, g.rows * g.cols);
        for (size_t k = 0; k < n; k++) {
            before += (double)x[k] * (double)x[k];
            after += (double)message[k] * (double)message[k];
            assert_true(fabsf(left[k]) < 1e-5f);
        }
        assert_true(fabs(after / before - 1) < 1e-5);
        size_t last = g.down * g.across - 1;
        size_t at =
            (g.down - 1) * g.rows * g.across * g.cols + (g.across - 1) * g.cols;
        for (size_t k = 0; k < g.k; k += 1 + g.k / 50) {
            double want = coefficient(&g, at, k / g.cols, k % g.cols);
            assert_true(fabs((double)message[last * g.k + k] - want) < 1e-4);
        }
        decode(&g, message, 1);
        for (size_t k = 0; k < n; k++)
            assert_true(fabsf(x[k]) < 1e-4f || out[k] == copysignf(1, x[k]));
        free(message);
    }
}

// What is sent is not shorter than what is kept, and what is kept has none of
// the coefficients that were sent.
static void the_largest_are_sent(void **state)
{
    (void)state;
    struct sync_settings s = settings(0.1), all = settings(1);
    for (int i = 0; i < SHAPES; i++) {
        size_t n = size_of(i);
        struct demo_grid g = grid_of(i, &s), whole = grid_of(i, &all);
        float *message = malloc(demo_bytes(&g));
        float *rest = malloc(demo_bytes(&whole));
        fill(n, 4);
        encode(&g, &s, n, message);
        memcpy(x, left, n * sizeof *x);
        encode(&whole, &all, n, rest);
        for (size_t c = 0; c < g.down * g.across; c++) {
            float least = INFINITY, most = 0;
            for (size_t k = 0; k < g.k; k++)
                least = fminf(least, fabsf(message[c * g.k + k]));
            int sent = 0;
            for (size_t k = 0; k < whole.k; k++) {
                most = fmaxf(most, fabsf(rest[c * whole.k + k]));
                sent += fabsf(rest[c * whole.k + k]) < 1e-5f;
            }
            assert_true(most <= least + 1e-5f);
            assert_true(sent >= (int)g.k);
        }
        free(message);
        free(rest);
    }
}

// Workers that send one coefficient each: the mean is over those that sent it,
// and not a part of it. Workers 0 and 2 send the mean of their numbers, and
// worker 1 half a wave.
static void the_mean_is_of_those_who_sent(void **state)
{
    (void)state;
    struct sync_settings s = settings(0.0001); // one of a chunk
    struct demo_grid g = demo_grid(&s, 64, 0);
    char messages[3 * 8];
    double wave[64];
    assert_int_equal(demo_bytes(&g), 8); // f32, 6 bits
    static const float height[3] = {3, 4, -5};
    for (size_t w = 0; w < 3; w++) {
        for (size_t i = 0; i < 64; i++) {
            wave[i] = 4 * cos(acos(-1) * (2 * (double)i + 1) / 128);
            x[i] = w == 1 ? (float)wave[i] : height[w];
        }
        encode(&g, &s, 64, messages + 8 * w);
    }
    decode(&g, messages, 3);
    for (size_t i = 0; i < 64; i++)
        assert_true(out[i] == ((3 - 5) / 2.0 + wave[i] > 0 ? 1.0f : -1.0f));
    decode(&g, messages, 2);
    for (size_t i = 0; i < 64; i++)
        assert_true(out[i] == (3 + wave[i] > 0 ? 1.0f : -1.0f));
    memset(x, 0, sizeof x);
    encode(&g, &s, 64, messages);
    decode(&g, messages, 1); // zeros stay where they are
    for (size_t i = 0; i < 64; i++)
        assert_true(out[i] == 0);
}

// Whoever sends it, a number that is not finite makes a chunk NaN.
static void what_is_not_finite_is_seen(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f};
    struct sync_settings s = settings(0.01);
    for (int i = 0; i < SHAPES; i++)
        for (int b = 0; b < 4; b++) {
            size_t n = size_of(i), m;
            struct demo_grid g = grid_of(i, &s);
            bool seen = false;
            if (b == 3 && g.rows * g.cols < 16)
                continue; // no sum overflows
            char *messages = malloc(2 * demo_bytes(&g));
            fill(n, 5);
            encode(&g, &s, n, messages);
            for (m = 0; b == 3 && m < n; m++)
                x[m] = bad[b];
            x[n / 2] = bad[b];
            encode(&g, &s, n, messages + demo_bytes(&g));
            assert_int_equal(demo_check(&g, messages + demo_bytes(&g)), 0);
            decode(&g, messages, 2);
            for (size_t k = 0; k < n; k++)
                seen = seen || isnan(out[k]);
            assert_true(seen);
            free(messages);
        }
}

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    struct sync_settings s = settings(0.05);
    struct demo_grid g = demo_grid(&s, 60, 0); // 3 of 60, 6 bits each
    uint32_t message[4];
    assert_int_equal(demo_bytes(&g), 16);
    fill(60, 6);
    encode(&g, &s, 60, message);
    assert_int_equal(demo_check(&g, message), 0);
    message[3] = 1 | 61 << 6 | 62 << 12;
    assert_int_equal(demo_check(&g, message), -1);
    assert_string_equal(fail_message(),
                        "entry 1 has index 61, in a chunk of 60");
    message[3] = 7 | 7 << 6 | 9 << 12;
    assert_int_equal(demo_check(&g, message), -1);
    assert_string_equal(fail_message(), "entry 1 has index 7 after 7");
    message[3] = 7 | 8 << 6 | 9 << 12;
    assert_int_equal(demo_check(&g, message), 0);
    message[3] |= 1 << 18;
    assert_int_equal(demo_check(&g, message), -1);
    assert_string_equal(fail_message(), "it has bits behind the last index");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_have_the_largest_sides),
        cmocka_unit_test(it_is_the_orthonormal_dct),
        cmocka_unit_test(the_largest_are_sent),
        cmocka_unit_test(the_mean_is_of_those_who_sent),
        cmocka_unit_test(what_is_not_finite_is_seen),
        cmocka_unit_test(malformed_messages_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
