// test_tiles.c - the plain C version of AMX tiles computes what Intel's manual
// says of the tile instructions.

#define TILES_PLAIN "tests/tiles_plain.h"
#include "model/cpu/tiles.h"

#include "base/base.h"
#include "base/half.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test.h"

enum { M = 64, N = 96, K = 160 };

static struct tiles x;

// Whole numbers, which are exact in any order, show the layout of a, b and c.
static void a_product(void **state)
{
    (void)state;
    static uint16_t a[M][K], pairs[K / 2][N][2];
    static float b[K][N], c[M][N];
    for (int i = 0; i < M; i++)
        for (int k = 0; k < K; k++)
            a[i][k] = bf16_from_float((float)rng_below(1, i * K + k, 15) - 7);
    for (int k = 0; k < K; k++)
        for (int j = 0; j < N; j++) {
            b[k][j] = (float)rng_below(2, k * N + j, 15) - 7;
            pairs[k / 2][j][k % 2] = bf16_from_float(b[k][j]);
        }
    for (int times = 1; times <= 2; times++) {
        tiles_begin(&x);
        tiles_product(&x, &c[0][0], N, &a[0][0], K, &pairs[0][0][0], N, M, N, K,
                      times > 1);
        tiles_end(&x);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                float want = 0;
                for (int k = 0; k < K; k++)
                    want += bf16_to_float(a[i][k]) * b[k][j];
                assert_true(c[i][j] == (float)times * want);
            }
    }
}

// Returns c plus four products, which tile_dot() adds in tiles of one row.
static float dot(float c, const float a[4], const float b[4])
{
    struct tile_shapes s = {.palette = 1};
    uint16_t left[4], right[2][2];
    s.rows[0] = s.rows[1] = 1, s.rows[2] = 2;
    s.bytes[0] = 4, s.bytes[1] = 8, s.bytes[2] = 4;
    for (int k = 0; k < 4; k++) {
        left[k] = bf16_from_float(a[k]);
        right[k / 2][k % 2] = bf16_from_float(b[k]);
    }
    tile_config(&x, &s);
    tile_load(&x, 0, &c, 4);
    tile_load(&x, 1, left, sizeof left);
    tile_load(&x, 2, right, sizeof right[0]);
    tile_dot(&x, 0, 1, 2);
    tile_store(&x, 0, &c, 4);
    return c;
}

static void the_order_of_sums(void **state)
{
    (void)state;
    static const float ones[] = {1, 1, 1, 1};
    // Even and odd products have sums of their own: 2^24 - 2^24, and 1 + 1.
    assert_true(dot(0, (float[]){0x1p24f, 1, -0x1p24f, 1}, ones) == 2);
    // Each sum is in order: 1 + 2^24 loses the 1.
    assert_true(dot(0, (float[]){1, 0, 0x1p24f, 0}, ones) == 0x1p24f);
    // c is added last: 2^24 + (1 + 1) is exact, (2^24 + 1) + 1 is not.
    assert_true(dot(0x1p24f, (float[]){1, 1, 0, 0}, ones) == 0x1p24f + 2);
    // Products are not rounded before they are added (1 + 2^-7 is a bf16).
    float third = dot(0, (float[]){1 + 0x1p-7f, 0, -1, 0},
                      (float[]){1 + 0x1p-7f, 0, 1 + 0x1p-6f, 0});
    assert_true(third == 0x1p-14f);
}

static void denormal_numbers(void **state)
{
    (void)state;
    static const float ones[] = {1, 1, 1, 1};
    assert_true(dot(0, (float[]){0x1p-127f, 0, 0, 0}, ones) == 0); // factor
    assert_true(dot(0x1p-130f, (float[]){1, 0, 0, 0}, ones) == 1); // c
    assert_true(dot(0, (float[]){0x1p-100f, 0, 0, 0},
                    (float[]){0x1p-40f, 0, 0, 0}) == 0); // result
    assert_true(dot(0, (float[]){0x1p-126f, 0, 0, 0}, ones) == 0x1p-126f);
    assert_true(isnan(dot(0, (float[]){NAN, 0, 0, 0}, ones)));
    assert_true(dot(INFINITY, ones, ones) == INFINITY);
}

// Runs f() in a child process. Returns true if f() ends the child, as an
// exception of the processor would.
static bool ends(void (*f)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)!freopen("/dev/null", "w", stderr);
        f();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status != 0;
}

static struct tile_shapes shapes;

static void configure(void)
{
    tile_config(&x, &shapes);
}

static void use(void)
{
    tile_config(&x, &shapes);
    tile_dot(&x, 0, 1, 2);
}

static void bounds(void **state)
{
    (void)state;
    const struct tile_shapes good = {.palette = 1,
                                     .bytes = {64, 64, 64},
                                     .rows = {16, 16, 16}};
    shapes = good;
    assert_false(ends(use));
    shapes.palette = 2;
    assert_true(ends(configure));
    shapes = good, shapes.rows[1] = 17;
    assert_true(ends(configure));
    shapes = good, shapes.bytes[1] = 65;
    assert_true(ends(configure));
    shapes = good, shapes.rows[8] = 1, shapes.bytes[8] = 4; // there are eight
    assert_true(ends(configure));
    shapes = good, shapes.zero[3] = 1;
    assert_true(ends(configure));
    shapes = good, shapes.rows[1] = 8; // other than c's
    assert_false(ends(configure));
    assert_true(ends(use));
    shapes = good, shapes.bytes[1] = 32; // other than b's rows
    assert_true(ends(use));
    shapes = good, shapes.rows[2] = shapes.bytes[2] = 0; // none
    assert_true(ends(use));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product),
        cmocka_unit_test(the_order_of_sums),
        cmocka_unit_test(denormal_numbers),
        cmocka_unit_test(bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
