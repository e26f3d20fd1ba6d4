// test_attention.c - compares attention with a plain version in double
// precision, and its gradients with central differences: for every table of
// kernels that this machine can run, and for the tiled kernels in plain C.

#include "tests/op_case.h"
#include "tests/reference_gpt2.h"
#include "tests/test.h"

#include <math.h>
#include <omp.h>
#include <string.h>

static float scratch[1 << 20];

// ---- T is not a multiple of the queries that a kernel takes at a time, and D
// not a multiple of a vector register

enum { B = 2, T = 37, NH = 2, D = 10, C = NH * D };

struct shape {
    int B, T, NH, D;
};

static struct shape now; // under test
static const struct mask *attention_mask;

static void attention_op(void)
{
    ref_attention(out.d, in.d, now.B, now.T, now.NH * now.D, now.NH,
                  attention_mask);
}

// Compares all outputs. Of the gradients of q, k and v, compares one in
// `every`.
static void check_attention(struct shape is, const struct mask *mask, int every)
{
    static float lse[MAX];
    int channels = is.NH * is.D, n = is.B * is.T * channels;
    struct attention a = {is.B, is.T, channels, is.NH, *mask, scratch, 0, 0};
    size_t need =
        omp_get_max_threads() * attention_scratch(is.T, channels, is.NH);
    assert_true(need <= sizeof scratch / sizeof *scratch);
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        scratch[i] = NAN; // old contents must not matter
    now = is;
    attention_mask = mask;
    draw(&in, 3 * n, 12, 2);
    draw(&dout, n, 13, 1);
    attention_op();
    k->attention(out.raw, lse, in.raw, &a);
    near_raw("attention", out.raw, out.d, n);
    k->attention_backward(extra.raw, dout.raw, out.raw, lse, in.raw, &a);
    static double want[MAX];
    static float all[MAX], some[MAX];
    k->cast_up(all, extra.raw, 3 * n);
    int count = 0;
    for (int i = 0; i < 3 * n; i += every, count++) {
        want[count] = differences(attention_op, in.d + i, 1, n)[0];
        some[count] = all[i];
    }
    near("dqkv", some, want, count);
}

static void test_attention(void)
{
    const struct shape small = {B, T, NH, D};
    check_attention(small, &no_mask, 13);
    check_attention(small, &some_mask, 13);
}

static void every_table_computes_attention(void **state)
{
    (void)state;
    for_all_tables(test_attention);
}

// ---- attention on tiles, in plain C

#if defined(TILES_v4)
extern const struct kernels kernels_tiles_v4_bf16;
#endif
extern const struct kernels kernels_tiles_baseline_bf16;

static const struct kernels *const tiled[] = {
    &kernels_tiles_baseline_bf16,
#if defined(TILES_v4)
    &kernels_tiles_v4_bf16,
#endif
};

enum { TILED = sizeof tiled / sizeof *tiled };

// The tolerance is that of bf16 without tiles. Of the larger shapes only a few
// gradients are compared.
static void tiled_kernels_compute_attention(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {1, 1, 1, 1},   {2, 31, 2, 8},  {1, 32, 2, 16},  {1, 33, 3, 24},
        {2, 64, 1, 32}, {1, 65, 2, 48}, {1, 70, 2, 64},  {1, 130, 1, 64},
        {1, 40, 1, 80}, {1, 50, 1, 96}, {1, 67, 1, 128},
    };
    tolerance = 5e-3;
    for (int i = 0; i < TILED; i++) {
        k = tiled[i];
        if (i == 1 && !kernels_named(DTYPE_BF16, "v4"))
            continue;
        test_attention();
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) {
            const struct shape *s = &shapes[j];
            int n = 3 * s->B * s->T * s->NH * s->D;
            check_attention(*s, j % 2 ? &some_mask : &no_mask, n / 40 + 1);
        }
    }
}

// The results have the same bits in every run, with any number of threads.
static void tiled_kernels_repeat_their_bits(void **state)
{
    (void)state;
    enum { TOKENS = 70, WIDE = 96, HEADS = 3, SIZE = 2 * TOKENS * WIDE };
    static float lse[2][2 * HEADS * TOKENS];
    struct attention a = {2, TOKENS, WIDE, HEADS, some_mask, scratch, 0, 0};
    k = tiled[0];
    draw(&in, 3 * SIZE, 12, 2);
    draw(&dout, SIZE, 13, 1);
    for (int run = 0; run < 4; run++) {
        struct tensor3 *o = run ? &in2 : &out, *d = run ? &weight : &extra;
        omp_set_num_threads(run ? run : 2);
        k->attention(o->raw, lse[run > 0], in.raw, &a);
        k->attention_backward(d->raw, dout.raw, o->raw, lse[run > 0], in.raw,
                              &a);
        assert_memory_equal(o->raw, out.raw, 2 * SIZE);
        assert_memory_equal(d->raw, extra.raw, 3 * 2 * SIZE);
        assert_memory_equal(lse[run > 0], lse[0], sizeof lse[0]);
    }
    omp_set_num_threads(2);
}

int main(void)
{
    omp_set_num_threads(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_table_computes_attention),
        cmocka_unit_test(tiled_kernels_compute_attention),
        cmocka_unit_test(tiled_kernels_repeat_their_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
