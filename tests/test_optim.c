// test_optim.c - compares the update rules with plain double arithmetic, on a
// vector that is updated in pieces of any size. Also tests whole vectors with
// their 16-bit copy, clipping, schedules and loss scaling.

#include "optim/lr_schedule.h"
#include "optim/optim.h"
#include "optim/rule.h"
#include "optim/segment.h"

#include "base/base.h"
#include "base/rng.h"
#include "device/device.h"
#include "device/vector.h"

#include <math.h>
#include <omp.h>

#include "tests/test.h"

enum { N = 1003, STEPS = 20 };

static struct optim_config adamw(void)
{
    return (struct optim_config){
        .kind = OPTIM_ADAMW,
        .beta1 = 0.9f,
        .beta2 = 0.95f,
        .eps = 1e-8f,
        .weight_decay = 0.1f,
        .ndecay = 2,
        .decay = {{.off = 0, .n = 100}, {.off = 501, .n = 300}},
    };
}

static bool decays(size_t i)
{
    return i < 100 || (i >= 501 && i < 801);
}

static float gradient(int step, size_t i)
{
    return (float)rng_normal(rng_key(7, (uint64_t)step), i);
}

// The formulas of optim.h as the papers write them, in double.
static void reference(const struct optim_config *c, double *p, double *m,
                      double *v, int step, double lr, double scale)
{
    for (size_t i = 0; i < N; i++) {
        double g = scale * gradient(step, i);
        double wd = decays(i) ? c->weight_decay : 0;
        if (c->kind == OPTIM_SGD) {
            m[i] = c->momentum * m[i] + g;
            p[i] -= lr * (m[i] + wd * p[i]);
            continue;
        }
        m[i] = c->beta1 * m[i] + (1 - c->beta1) * g;
        v[i] = c->beta2 * v[i] + (1 - c->beta2) * g * g;
        double mh = m[i] / (1 - pow(c->beta1, step));
        double vh = v[i] / (1 - pow(c->beta2, step));
        p[i] -= lr * (mh / (sqrt(vh) + c->eps) + wd * p[i]);
    }
}

// Runs STEPS updates over pieces of `piece` elements.
static void run(const struct optim_config *c, float *p, size_t piece)
{
    static float m[N], v[N], g[N];
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    for (size_t i = 0; i < N; i++)
        p[i] = (float)rng_normal(3, i);
    for (int step = 1; step <= STEPS; step++) {
        for (size_t i = 0; i < N; i++)
            g[i] = gradient(step, i);
        for (size_t off = 0; off < N; off += piece) {
            size_t n = off + piece < N ? piece : N - off;
            float *slots[] = {m + off, v + off};
            optim_update(c, p + off, slots, g + off, off, n, step, 0.01f, 0.5f);
        }
    }
}

static void against_reference(const struct optim_config *c)
{
    static double p[N], m[N], v[N];
    static float whole[N], cut[N];
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    for (size_t i = 0; i < N; i++)
        p[i] = (float)rng_normal(3, i);
    for (int step = 1; step <= STEPS; step++)
        reference(c, p, m, v, step, 0.01, 0.5);
    run(c, whole, N);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(whole[i] - p[i]) < 1e-5);
    for (size_t piece = 1; piece < N; piece = piece * 3 + 4) {
        run(c, cut, piece);
        assert_memory_equal(cut, whole, sizeof whole);
    }
}

static void adamw_equals_the_formula(void **state)
{
    (void)state;
    struct optim_config c = adamw();
    assert_int_equal(optim_slots(&c), 2);
    assert_string_equal(optim_slot_name(&c, 1), "exp_avg_sq");
    against_reference(&c);
}

static void sgd_equals_the_formula(void **state)
{
    (void)state;
    struct optim_config c = adamw();
    c.kind = OPTIM_SGD;
    assert_int_equal(optim_slots(&c), 0);
    against_reference(&c);
    c.momentum = 0.9f;
    assert_int_equal(optim_slots(&c), 1);
    against_reference(&c);
}

// Second moments from 0 to far above eps, and moments of one size: where the
// root of the second is not above eps, nothing but decay remains.
static void frozen_equals_the_formula(void **state)
{
    (void)state;
    const struct optim_config c = adamw();
    static float p[N], m[N], v[N], moments[N];
    for (size_t piece = 1; piece <= N; piece += 501) {
        for (size_t i = 0; i < N; i++) {
            p[i] = (float)rng_normal(3, i);
            v[i] = i % 3 ? powf(10, (float)(i % 40) - 39.5f) : 0;
            moments[i] = i % 2 ? 0.25f : -0.25f;
        }
        for (size_t off = 0; off < N; off += piece) {
            size_t n = off + piece < N ? piece : N - off;
            float *slots[] = {m + off, v + off};
            optim_update_frozen(&c, p + off, slots, moments + off, off, n,
                                0.01f, 0.5f);
        }
        for (size_t i = 0; i < N; i++) {
            double root = sqrt((double)v[i]), eps = (double)c.eps;
            double want = root > eps ? (i % 2 ? 0.125 : -0.125) : 0;
            double q = rng_normal(3, i);
            q -= 0.01 * (want / (root + eps) + (decays(i) ? 0.1 * q : 0));
            assert_true((double)m[i] == want);
            assert_true(fabs((double)p[i] - q) < 1e-5 * (1 + fabs(q)));
        }
    }
}

enum { LONG = 50 * RULE_BLOCK + 77, HALF = 2 };

// Updates a whole vector p with `threads` threads, and its copy in `format`
// (fp32: no copy). The copy must equal the rounded parameters.
static void whole_vectors(int threads, enum dtype format, float *p)
{
    static float g[LONG];
    static uint16_t narrow[LONG], want[LONG];
    struct optim_config c = adamw();
    struct half_copy copy = {.at = narrow, .format = format};
    struct device *d;
    struct rule r;
    float norm;
    assert_int_equal(device_open(&d, "cpu"), 0);
    assert_int_equal(rule_open(&r, d, &c, LONG, NULL), 0);
    omp_set_num_threads(threads);
    for (size_t i = 0; i < LONG; i++)
        p[i] = (float)rng_normal(3, i);
    for (int step = 1; step <= 3; step++) {
        struct rule_in in = {.step = step,
                             .lr = 0.01f,
                             .scale = 0.5f,
                             .clip = 1,
                             .copy = format == DTYPE_F32 ? NULL : &copy};
        for (size_t i = 0; i < LONG; i++)
            g[i] = gradient(step, i);
        assert_int_equal(rule_step(&r, p, g, &in, &norm), 0);
        if (format == DTYPE_F32)
            continue;
        vector_cast(want, format, p, DTYPE_F32, LONG);
        assert_memory_equal(narrow, want, LONG * HALF);
        assert_true(copy.fresh);
        copy.fresh = false;
        g[LONG - 1] = INFINITY; // the update is skipped, the copy not fresh
        assert_int_equal(rule_step(&r, p, g, &in, &norm), 0);
        assert_memory_equal(narrow, want, LONG * HALF);
        assert_false(copy.fresh);
    }
    rule_close(&r);
    device_close(&d);
}

static void an_update_also_writes_the_copy(void **state)
{
    (void)state;
    static float plain[LONG], other[LONG];
    whole_vectors(1, DTYPE_F32, plain);
    for (int threads = 1; threads <= 3; threads++)
        for (int format = 0; format < 3; format++) {
            whole_vectors(threads, (enum dtype)format, other);
            assert_memory_equal(other, plain, sizeof plain);
        }
}

static void the_norm_sets_the_clip(void **state)
{
    (void)state;
    static float g[N];
    double want = 0;
    for (size_t i = 0; i < N; i++) {
        g[i] = gradient(1, i);
        want += (double)g[i] * g[i];
    }
    double got = optim_sum_squares(g, N);
    assert_true(fabs(got - want) < 1e-9 * want);

    float norm;
    float scale = optim_clip_scale(400, 0.25f, 0, &norm);
    assert_true(scale == 0.25f && norm == 5.0f);
    scale = optim_clip_scale(400, 0.25f, 1, &norm);
    assert_true(fabsf(scale * 20 - 1) < 1e-5f && norm == 5.0f);

    float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        g[N / 2] = bad[i];
        optim_clip_scale(optim_sum_squares(g, N), 1, 1, &norm);
        assert_false(isfinite(norm));
    }
    g[N / 2] = 3e38f; // finite, though its square overflows fp32
    assert_true(isfinite(optim_sum_squares(g, N)));
}

// First each lane is summed, then the lanes. So the three ones of lane 1 become
// 3 before they are added to 2^53, and the sum is rounded to 2^53 + 4. Added to
// 2^53 one by one, they would be lost. The sum of a block does not depend on
// the call that computes it.
static void the_norm_adds_in_one_order(void **state)
{
    (void)state;
    enum { BLOCKS = 2 * RULE_LANES + 2, LAST = BLOCKS * RULE_BLOCK - 5 };
    static float g[LAST];
    double sums[BLOCKS] = {0}, parts[BLOCKS];
    sums[0] = 0x1p53;
    sums[1] = sums[1 + RULE_LANES] = sums[1 + 2 * RULE_LANES] = 1;
    assert_true(segment_norm(sums, BLOCKS) == 0x1p53 + 4);
    assert_int_equal(segment_blocks(LAST), BLOCKS);
    for (size_t i = 0; i < LAST; i++)
        g[i] = gradient(1, i);
    segment_squares(g, 0, LAST, NULL, sums);
    segment_squares(g + 7 * RULE_BLOCK, 7 * RULE_BLOCK, LAST - 7 * RULE_BLOCK,
                    NULL, parts);
    segment_squares(g, 0, 7 * RULE_BLOCK, NULL, parts);
    assert_memory_equal(sums, parts, sizeof sums);
    assert_true(sums[3] == optim_sum_squares(g + 3 * 4096, 4096));
    enum { SKIP = 2 * RULE_BLOCK + 100, MORE = 5 * RULE_BLOCK + 7 };
    struct optim_range some[] = {{0, SKIP, 0},
                                 {MORE, 10, 0},
                                 {MORE + 20, 30, 0}};
    struct norm_parts others = {.elsewhere = some, .count = 3};
    segment_squares(g, 0, 7 * RULE_BLOCK, &others, parts);
    assert_true(parts[0] == 0 && parts[1] == 0);
    assert_true(parts[2] == optim_sum_squares(g + SKIP, RULE_BLOCK - 100));
    assert_memory_equal(sums + 3, parts + 3, 2 * sizeof *sums);
    assert_true(parts[5] ==
                optim_sum_squares(g + 5 * RULE_BLOCK, 7) +
                    optim_sum_squares(g + MORE + 10, 10) +
                    optim_sum_squares(g + MORE + 50, RULE_BLOCK - 57));
    assert_true(parts[6] == sums[6]);
    segment_squares(g + RULE_BLOCK, RULE_BLOCK, RULE_BLOCK, &others, parts);
    assert_true(parts[1] == 0);
    g[SKIP - 1] = NAN; // what does not count must still be finite
    g[MORE + 20] = INFINITY;
    segment_squares(g, 0, 7 * RULE_BLOCK, &others, parts);
    assert_true(parts[1] == 0 && isnan(parts[2]) && isinf(parts[5]));
}

static void schedules_give_the_learning_rate(void **state)
{
    (void)state;
    struct schedule s = {.kind = SCHEDULE_COSINE,
                         .lr = 1,
                         .min_lr = 0.1f,
                         .warmup = 10,
                         .steps = 110};
    assert_true(fabsf(schedule_lr(&s, 0) - 0.1f) < 1e-6f);
    assert_true(schedule_lr(&s, 9) == 1.0f && schedule_lr(&s, 10) == 1.0f);
    assert_true(fabsf(schedule_lr(&s, 60) - 0.55f) < 1e-6f);
    assert_true(schedule_lr(&s, 110) == 0.1f && schedule_lr(&s, 999) == 0.1f);
    s.kind = SCHEDULE_LINEAR;
    assert_true(fabsf(schedule_lr(&s, 35) - 0.775f) < 1e-6f);
    s.kind = SCHEDULE_CONSTANT;
    assert_true(schedule_lr(&s, 100) == 1.0f);
    s = (struct schedule){SCHEDULE_COSINE, 1, 0, 5, 5}; // warm-up to the end
    assert_true(schedule_lr(&s, 4) == 1.0f && schedule_lr(&s, 5) == 0.0f);
}

static void loss_scales_halve_and_double(void **state)
{
    (void)state;
    struct loss_scale s = {.scale = 1024, .window = 3};
    loss_scale_update(&s, true);
    assert_true(s.scale == 512);
    loss_scale_update(&s, false);
    loss_scale_update(&s, false);
    assert_true(s.scale == 512);
    loss_scale_update(&s, false);
    assert_true(s.scale == 1024);
    for (int i = 0; i < 50; i++)
        loss_scale_update(&s, true);
    assert_true(s.scale == 1);
    for (int i = 0; i < 200; i++)
        loss_scale_update(&s, false);
    assert_true(s.scale == 0x1p24f);
    s = (struct loss_scale){.scale = 128};
    loss_scale_update(&s, true);
    assert_true(s.scale == 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_equals_the_formula),
        cmocka_unit_test(sgd_equals_the_formula),
        cmocka_unit_test(frozen_equals_the_formula),
        cmocka_unit_test(an_update_also_writes_the_copy),
        cmocka_unit_test(the_norm_sets_the_clip),
        cmocka_unit_test(the_norm_adds_in_one_order),
        cmocka_unit_test(schedules_give_the_learning_rate),
        cmocka_unit_test(loss_scales_halve_and_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
