// test_model_grad.c - compares losses, logits and gradients of the whole model
// with double precision and its central differences. Also tests dropout,
// accumulation, reruns and bad input.

#include "base/base.h"
#include "base/rng.h"
#include "device/vector.h"
#include "tests/reference_gpt2.h"
#include "tests/test.h"
#include "tests/tiny_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *widened(const float *x, size_t n)
{
    double *out = mem_alloc(n, sizeof *out);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i];
    return out;
}

// ---- against double precision

static double reference(const struct bench *b, const double *params, int B,
                        double *logits)
{
    return ref_gpt2(&b->job.config, params, b->x, b->y, B, b->job.tokens,
                    logits);
}

// Compares `samples` gradients of every tensor with central differences. The
// norm of a tensor's errors must be small relative to the norm of its central
// differences.
static void check_gradients(struct bench *b, int first, int last, int samples)
{
    double *params = widened(b->params, b->n);
    for (int i = first; i < last; i++) {
        struct tensor t;
        model_tensor(&b->job.config, i, &t);
        double diff = 0, norm = 0;
        for (int s = 0; s < samples; s++) {
            size_t at = t.off + rng_below(20 + i, s, t.n);
            double keep = params[at], h = 1e-4;
            params[at] = keep + h;
            double up = reference(b, params, b->job.batch, NULL);
            params[at] = keep - h;
            double slope =
                (up - reference(b, params, b->job.batch, NULL)) / (2 * h);
            params[at] = keep;
            diff += pow(b->grads[at] - slope, 2);
            norm += pow(slope, 2);
        }
        bool right = sqrt(diff) <= 3e-5 * sqrt(norm) + 1e-7;
        if (!right)
            print_error("%s: gradients off by %g of %g\n", t.name, sqrt(diff),
                        sqrt(norm));
        assert_true(right);
    }
    mem_free(params);
}

static void gradients_equal_central_differences(void **state)
{
    (void)state;
    for (int i = 0; kernels_isa(i); i++) {
        if (!kernels_named(DTYPE_F32, kernels_isa(i)))
            continue;
        setenv("MODEL_ISA", kernels_isa(i), 1);
        struct bench b = begin(tiny, DTYPE_F32, ROWS, TOKENS);
        for (size_t k = 0; k < b.n; k++)
            b.grads[k] = NAN; // must be replaced everywhere
        float loss = train(&b);
        double *params = widened(b.params, b.n);
        double want = reference(&b, params, ROWS, NULL);
        assert_true(fabs(loss - want) < 1e-6 * want);
        check_gradients(&b, 0, model_ntensors(&tiny), 12);
        // Rows of wpe after the last position get no gradient.
        for (int t = TOKENS; t < tiny.context; t++)
            for (int c = 0; c < tiny.channels; c++)
                assert_true(b.grads[(tiny.vocab + t) * tiny.channels + c] == 0);
        mem_free(params);
        end(&b);
    }
    unsetenv("MODEL_ISA");
}

// The model has so many symbols that its logits need several slices.
static void logits_in_several_slices_are_right(void **state)
{
    (void)state;
    struct model_config wide = {
        .layers = 1, .heads = 1, .channels = 4, .context = 70, .vocab = 200000};
    struct bench b = begin(wide, DTYPE_F32, 2, 70);
    float loss = train(&b), eval;
    double *params = widened(b.params, b.n);
    double want = reference(&b, params, 2, NULL);
    assert_true(fabs(loss - want) < 1e-6 * want);
    assert_int_equal(model_eval(b.m, b.x, b.y, 2, &eval), 0);
    assert_true(eval == loss);
    // ln_f gets the head's input gradient from every slice, and wte a share of
    // its gradient from each. Checks the slope of wte along sin(v) at one
    // channel.
    check_gradients(&b, model_ntensors(&wide) - 1, model_ntensors(&wide), 2);
    double sum = 0, slope = 0, h = 1e-3;
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int v = 0; v < wide.vocab; v++)
            params[v * 4 + 1] = b.params[v * 4 + 1] + sign * h * sin(v);
        slope += sign * reference(&b, params, 2, NULL) / (2 * h);
    }
    for (int v = 0; v < wide.vocab; v++)
        sum += b.grads[v * 4 + 1] * sin(v);
    assert_true(fabs(sum - slope) < 1e-3 * fabs(slope));
    mem_free(params);
    end(&b);
}

static void evaluation_equals_the_reference(void **state)
{
    (void)state;
    struct bench b = begin(tiny, DTYPE_F32, ROWS, TOKENS);
    b.job.train = false;
    b.job.grads = NULL;
    struct model *reader = NULL;
    assert_int_equal(model_open(&reader, &b.job), 0);
    double *params = widened(b.params, b.n);
    double all[ROWS * TOKENS * 29];
    for (int B = ROWS; B > 0; B--) {
        double want = reference(&b, params, B, all);
        float loss;
        assert_int_equal(model_eval(b.m, b.x, b.y, B, &loss), 0);
        assert_true(fabs(loss - want) < 1e-6 * want);
        float same;
        assert_int_equal(model_eval(reader, b.x, b.y, B, &same), 0);
        assert_true(same == loss);
    }
    for (int n = 1; n <= TOKENS; n += 5) {
        float got[29];
        assert_int_equal(model_logits(reader, b.x, n, got), 0);
        for (int v = 0; v < tiny.vocab; v++)
            assert_true(fabs(got[v] - all[(n - 1) * 29 + v]) < 2e-5);
    }
    mem_free(params);
    model_close(&reader);
    end(&b);
}

// ---- accumulation, order, reruns

static void gradients_are_accumulated(void **state)
{
    (void)state;
    for (int format = 0; format < 3; format++) {
        struct bench b = begin(tiny, format, ROWS, TOKENS);
        train(&b);
        float *once = copy(b.grads, b.n);
        b.step.accumulate = true;
        train(&b);
        train(&b);
        for (size_t i = 0; i < b.n; i++)
            once[i] *= 3;
        assert_true(distance(b.grads, once, b.n) < 1e-6);
        b.step.accumulate = false;
        train(&b);
        for (size_t i = 0; i < b.n; i++)
            once[i] /= 3;
        assert_true(distance(b.grads, once, b.n) < 1e-6);
        mem_free(once);
        end(&b);
    }
}

// Gradients that the watermark has passed do not change any more.
struct follow {
    const struct bench *b;
    float *seen;
    size_t off;
    int calls;
};

static void on_watermark(void *ctx, size_t off)
{
    struct follow *f = ctx;
    assert_true(off < f->off);
    memcpy(f->seen + off, f->b->grads + off, (f->off - off) * sizeof(float));
    f->off = off;
    f->calls++;
}

static void passed_gradients_do_not_change(void **state)
{
    (void)state;
    for (int format = 0; format < 3; format++) {
        struct bench b = begin(tiny, format, ROWS, TOKENS);
        struct follow f = {&b, copy(b.grads, b.n), b.n, 0};
        b.step.watermark = on_watermark;
        b.step.ctx = &f;
        for (int micro = 0; micro < 2; micro++) {
            b.step.micro = micro;
            b.step.accumulate = micro > 0;
            f.off = b.n;
            f.calls = 0;
            train(&b);
            assert_int_equal(f.off, 0);
            assert_true(f.calls >= tiny.layers + 2);
            assert_memory_equal(f.seen, b.grads, b.n * sizeof(float));
        }
        mem_free(f.seen);
        end(&b);
    }
}

static void reruns_have_the_same_bits(void **state)
{
    (void)state;
    struct model_config c = tiny;
    c.dropout = 0.1f;
    for (int format = 0; format < 3; format++) {
        struct bench a = begin(c, format, ROWS, TOKENS);
        struct bench b = begin(c, format, ROWS, TOKENS);
        for (int step = 0; step < 5; step++) {
            a.step.step = b.step.step = step;
            assert_true(train(&a) == train(&b));
            assert_memory_equal(a.grads, b.grads, a.n * sizeof(float));
        }
        end(&a);
        end(&b);
    }
}

// ---- dropout

// As long as the mask stays the same, the slope of the loss along the gradient
// is the gradient's norm.
static void dropout_has_the_right_gradient(void **state)
{
    (void)state;
    struct model_config c = tiny;
    c.dropout = 0.3f;
    struct bench b = begin(c, DTYPE_F32, ROWS, TOKENS);
    float plain, loss = train(&b);
    float *grads = copy(b.grads, b.n), *params = copy(b.params, b.n);
    assert_true(train(&b) == loss); // the same mask
    assert_int_equal(model_eval(b.m, b.x, b.y, ROWS, &plain), 0);
    assert_true(fabsf(plain - loss) > 1e-4f);
    struct bench none = begin(tiny, DTYPE_F32, ROWS, TOKENS);
    assert_true(train(&none) == plain);
    end(&none);

    double norm = 0, slope = 0, h = 1e-2;
    for (size_t i = 0; i < b.n; i++)
        norm += grads[i] * grads[i];
    for (int sign = -1; sign <= 1; sign += 2) {
        for (size_t i = 0; i < b.n; i++)
            b.params[i] = params[i] + (float)(sign * h / sqrt(norm)) * grads[i];
        slope += sign * train(&b) / (2 * h);
    }
    assert_true(fabs(slope - sqrt(norm)) < 2e-3 * sqrt(norm));

    memcpy(b.params, params, b.n * sizeof(float));
    b.step.step = 1;
    float other = train(&b);
    b.step.step = 0;
    b.step.micro = 1;
    float third = train(&b);
    assert_true(other != loss && third != loss && third != other);
    mem_free(grads);
    mem_free(params);
    end(&b);
}

// ---- recompute

// With recompute, layers are computed twice instead of kept. The gradients have
// the same bits in every micro-batch, with the same masks.
static void recompute_of(enum dtype format, float dropout)
{
    struct model_config c = tiny;
    c.layers = 3;
    c.dropout = dropout;
    struct bench kept = begin(c, format, ROWS, TOKENS);
    struct bench twice = begin(c, format, ROWS, TOKENS);
    struct model_bytes one, two;
    model_memory(&twice.job, &one);
    model_close(&twice.m);
    twice.job.recompute = true;
    model_memory(&twice.job, &two);
    assert_true(two.activations < one.activations);
    assert_int_equal(model_open(&twice.m, &twice.job), 0);
    for (int micro = 0; micro < 2; micro++) {
        float eval[2];
        kept.step.micro = twice.step.micro = micro;
        kept.step.accumulate = twice.step.accumulate = micro > 0;
        assert_true(train(&kept) == train(&twice));
        assert_memory_equal(kept.grads, twice.grads, kept.n * sizeof(float));
        assert_int_equal(model_eval(kept.m, kept.x, kept.y, 2, &eval[0]), 0);
        assert_int_equal(model_eval(twice.m, kept.x, kept.y, 2, &eval[1]), 0);
        assert_true(eval[0] == eval[1]);
    }
    end(&kept);
    end(&twice);
}

static void recompute_has_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; kernels_isa(i); i++)
        for (int format = 0; format < 3; format++) {
            if (!kernels_named(format, kernels_isa(i)))
                continue;
            setenv("MODEL_ISA", kernels_isa(i), 1);
            recompute_of(format, i == 0 ? 0 : 0.3f);
        }
    unsetenv("MODEL_ISA");
}

// ---- bad input

static void bad_input_is_refused(void **state)
{
    (void)state;
    struct bench b = begin(tiny, DTYPE_F32, ROWS, TOKENS);
    float loss = -1, logits[29];
    b.x[TOKENS + 4] = 29;
    assert_int_equal(model_train(b.m, &b.step, &loss), -1);
    assert_non_null(strstr(fail_message(), "token 29 at row 1, position 4"));
    b.x[TOKENS + 4] = 0;
    b.y[2] = -1;
    assert_int_equal(model_eval(b.m, b.x, b.y, 1, &loss), -1);
    assert_non_null(strstr(fail_message(), "target -1 at row 0, position 2"));
    b.y[2] = 0;
    b.x[0] = -5;
    assert_int_equal(model_logits(b.m, b.x, 1, logits), -1);
    b.x[0] = 0;
    b.params[b.n - 30] = NAN; // found while training
    assert_int_equal(model_train(b.m, &b.step, &loss), -1);
    assert_non_null(strstr(fail_message(), "ln_f.weight[18] is nan"));
    assert_true(loss == -1);
    struct model *m = NULL; // found when a model opens
    assert_int_equal(model_open(&m, &b.job), -1);
    assert_non_null(strstr(fail_message(), "ln_f.weight[18] is nan"));
    b.params[b.n - 30] = 1;
    struct model_job bad = b.job;
    bad.tokens = 17;
    assert_int_equal(model_open(&m, &bad), -1);
    bad = b.job;
    bad.batch = 0;
    assert_int_equal(model_open(&m, &bad), -1);
    bad = b.job;
    bad.batch = 2000000000;
    assert_int_equal(model_open(&m, &bad), -1);
    bad = b.job;
    bad.config.dropout = 1;
    assert_int_equal(model_open(&m, &bad), -1);
    bad = b.job;
    bad.config.heads = 5;
    assert_int_equal(model_open(&m, &bad), -1);
    assert_null(m);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_central_differences),
        cmocka_unit_test(logits_in_several_slices_are_right),
        cmocka_unit_test(evaluation_equals_the_reference),
        cmocka_unit_test(gradients_are_accumulated),
        cmocka_unit_test(passed_gradients_do_not_change),
        cmocka_unit_test(reruns_have_the_same_bits),
        cmocka_unit_test(dropout_has_the_right_gradient),
        cmocka_unit_test(recompute_has_the_same_bits),
        cmocka_unit_test(bad_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
