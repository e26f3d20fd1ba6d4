// test_model_grad.c - the whole model: losses, logits and gradients against
// double precision and its central differences; what formats, dropout,
// accumulation and bad input do.

#include "base/base.h"
#include "base/rng.h"
#include "device/vector.h"
#include "tests/reference_gpt2.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, TOKENS = 11 };

static const struct model_config tiny = {
    .layers = 2, .heads = 3, .channels = 24, .context = 16, .vocab = 29};

// A job with memory of its own, and tokens for it.
struct bench {
    struct model_job job;
    struct model *m;
    size_t n;
    float *params, *grads;
    int32_t *x, *y;
    struct model_step step;
};

// Weights large enough that every gradient counts, biases and LayerNorm's
// weights not at their first values.
static void draw_weights(struct bench *b)
{
    model_init(&b->job.config, 5, b->params);
    for (size_t i = 0; i < b->n; i++)
        b->params[i] += 0.3f * (float)(rng_uniform(9, i) - 0.5);
}

static struct bench begin(struct model_config c, enum dtype precision, int B,
                          int T)
{
    struct bench b = {.n = model_nparams(&c)};
    size_t rows = (size_t)B * T;
    b.params = mem_alloc(b.n, sizeof(float));
    b.grads = mem_alloc(b.n, sizeof(float));
    b.x = mem_alloc(rows, sizeof(int32_t));
    b.y = mem_alloc(rows, sizeof(int32_t));
    b.job = (struct model_job){.config = c,
                               .precision = precision,
                               .batch = B,
                               .tokens = T,
                               .threads = 2,
                               .train = true,
                               .params = b.params,
                               .grads = b.grads,
                               .seed = 3};
    draw_weights(&b);
    for (size_t i = 0; i < rows; i++) {
        b.x[i] = (int32_t)rng_below(1, i, c.vocab);
        b.y[i] = (int32_t)rng_below(2, i, c.vocab);
    }
    b.step = (struct model_step){.x = b.x, .y = b.y, .scale = 1};
    assert_int_equal(model_open(&b.m, &b.job), 0);
    return b;
}

static void end(struct bench *b)
{
    model_close(&b->m);
    assert_null(b->m);
    mem_free(b->params);
    mem_free(b->grads);
    mem_free(b->x);
    mem_free(b->y);
}

static float train(struct bench *b)
{
    float loss;
    assert_int_equal(model_train(b->m, &b->step, &loss), 0);
    return loss;
}

static float *copy(const float *x, size_t n)
{
    float *out = mem_alloc(n, sizeof *out);
    memcpy(out, x, n * sizeof *out);
    return out;
}

// |got - want| / |want|
static double distance(const float *got, const float *want, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += pow((double)got[i] - want[i], 2);
        norm += pow(want[i], 2);
    }
    return sqrt(diff / norm);
}

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

// About `samples` gradients of every tensor against central differences:
// relative difference in norm over each tensor.
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

static void test_gradients(void **state)
{
    (void)state;
    for (int i = 0; kernels_isas()[i]; i++) {
        if (!kernels_named(DTYPE_F32, kernels_isas()[i]))
            continue;
        setenv("MODEL_ISA", kernels_isas()[i], 1);
        struct bench b = begin(tiny, DTYPE_F32, ROWS, TOKENS);
        for (size_t k = 0; k < b.n; k++)
            b.grads[k] = NAN; // replaced, wherever it is
        float loss = train(&b);
        double *params = widened(b.params, b.n);
        double want = reference(&b, params, ROWS, NULL);
        assert_true(fabs(loss - want) < 1e-6 * want);
        check_gradients(&b, 0, model_ntensors(&tiny), 12);
        // wpe's rows behind T get no gradient.
        for (int t = TOKENS; t < tiny.context; t++)
            for (int c = 0; c < tiny.channels; c++)
                assert_true(b.grads[(tiny.vocab + t) * tiny.channels + c] == 0);
        mem_free(params);
        end(&b);
    }
    unsetenv("MODEL_ISA");
}

// So many symbols that the logits need several slices.
static void test_slices(void **state)
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
    // The head's input gradient reaches ln_f from every slice, and wte gets
    // one share from each: its sum over V at one channel is checked.
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

static void test_eval_and_logits(void **state)
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

// ---- formats

// Relative distance of the gradients from fp32's.
static double distance_from_fp32(enum dtype precision, float scale)
{
    struct bench exact = begin(tiny, DTYPE_F32, ROWS, TOKENS);
    struct bench b = begin(tiny, precision, ROWS, TOKENS);
    b.step.scale = scale;
    float want = train(&exact), got = train(&b);
    assert_true(fabsf(got - want) < 2e-2f * want);
    for (size_t i = 0; i < b.n; i++)
        b.grads[i] /= scale;
    double d = distance(b.grads, exact.grads, b.n);
    end(&exact);
    end(&b);
    return d;
}

static void test_formats(void **state)
{
    (void)state;
    double bf16 = distance_from_fp32(DTYPE_BF16, 1);
    double fp16 = distance_from_fp32(DTYPE_F16, 1024);
    print_message("gradients off fp32's: bf16 %.2g, fp16 %.2g\n", bf16, fp16);
    assert_true(bf16 > 1e-4 && bf16 < 3e-2);
    assert_true(fp16 > 1e-5 && fp16 < 5e-3);
}

static int not_finite(const struct bench *b)
{
    int count = 0;
    for (size_t i = 0; i < b->n; i++)
        count += !isfinite(b->grads[i]);
    return count;
}

// A loss scale beyond fp16's range shows in the gradients, not in the loss;
// too small a scale loses gradients to underflow.
static void test_fp16_range(void **state)
{
    (void)state;
    struct bench b = begin(tiny, DTYPE_F16, ROWS, TOKENS);
    float loss = train(&b);
    assert_int_equal(not_finite(&b), 0);
    for (size_t i = 0; i < b.n; i++) // every gradient is an fp16 number
        assert_true(f16_to_float(f16_from_float(b.grads[i])) == b.grads[i]);
    b.step.scale = 1e7f;
    assert_true(train(&b) == loss);
    assert_true(not_finite(&b) > 0);
    b.step.scale = 1e-8f;
    train(&b);
    double sum = 0;
    for (size_t i = 0; i < b.n; i++)
        sum += fabs(b.grads[i]);
    assert_true(sum == 0);
    end(&b);
}

// A changed weight is seen after model_params_changed(), in every format.
static void test_params_changed(void **state)
{
    (void)state;
    for (int format = 0; format < 3; format++) {
        struct bench b = begin(tiny, format, ROWS, TOKENS);
        float before = train(&b);
        for (size_t i = 0; i < b.n; i++)
            b.params[i] *= 0.5f;
        model_params_changed(b.m);
        float after = train(&b);
        assert_true(after != before);
        struct model *again = NULL; // as a model that opens with them
        assert_int_equal(model_open(&again, &b.job), 0);
        float loss;
        assert_int_equal(model_train(again, &b.step, &loss), 0);
        assert_true(loss == after);
        model_close(&again);
        end(&b);
    }
}

// A copy that was written beside the params is believed once, and is the one
// that the model would have made.
static void test_fresh_copy(void **state)
{
    (void)state;
    for (int format = 0; format < 3; format++) {
        struct bench b = begin(tiny, format, ROWS, TOKENS);
        struct half_copy *copy = model_copy(b.m);
        assert_true(!copy == (format == DTYPE_F32));
        float before = train(&b);
        for (size_t i = 0; i < b.n; i++)
            b.params[i] *= 0.5f;
        if (copy) {
            copy->fresh = true; // though it is not
            model_params_changed(b.m);
            assert_true(train(&b) == before);
        }
        model_params_changed(b.m);
        float after = train(&b);
        assert_true(after != before);
        if (copy) {
            memset(copy->at, 0, b.n * sizeof(uint16_t));
            vector_cast(copy->at, copy->format, b.params, DTYPE_F32, b.n);
            copy->fresh = true;
            model_params_changed(b.m);
            assert_true(train(&b) == after);
        }
        end(&b);
    }
}

// ---- accumulation, order, reruns

static void test_accumulate(void **state)
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

// What the watermark has passed is never touched again.
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

static void test_watermark(void **state)
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

static void test_reruns(void **state)
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

// The slope of the loss along a direction, under one mask, is the gradient's.
static void test_dropout(void **state)
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

// ---- bad input

static void test_bad_input(void **state)
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
    b.params[b.n - 30] = NAN; // while training
    assert_int_equal(model_train(b.m, &b.step, &loss), -1);
    assert_non_null(strstr(fail_message(), "ln_f.weight[18] is nan"));
    assert_true(loss == -1);
    struct model *m = NULL; // and from a file
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
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_eval_and_logits),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_fp16_range),
        cmocka_unit_test(test_params_changed),
        cmocka_unit_test(test_fresh_copy),
        cmocka_unit_test(test_accumulate),
        cmocka_unit_test(test_watermark),
        cmocka_unit_test(test_reruns),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
