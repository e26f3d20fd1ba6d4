// test_model_formats.c - the whole model in 16 bits: its distance from fp32,
// its overflows, and the times at which the copy of the weights is refreshed.

#include "base/base.h"
#include "device/vector.h"
#include "tests/test.h"
#include "tests/tiny_model.h"

#include <math.h>
#include <string.h>

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

static void gradients_in_16_bits_are_close(void **state)
{
    (void)state;
    double bf16 = distance_from_fp32(DTYPE_BF16, 1);
    double fp16 = distance_from_fp32(DTYPE_F16, 1024);
    print_message("distance from fp32's gradients: bf16 %.2g, fp16 %.2g\n",
                  bf16, fp16);
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
static void a_wrong_loss_scale_shows_in_the_gradients(void **state)
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
static void changed_weights_are_seen(void **state)
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
        struct model *again = NULL; // a model that opens with these params
        assert_int_equal(model_open(&again, &b.job), 0);
        float loss;
        assert_int_equal(model_train(again, &b.step, &loss), 0);
        assert_true(loss == after);
        model_close(&again);
        end(&b);
    }
}

// A copy that was written together with the params is used once without a
// check. It equals the copy that the model would have made.
static void a_fresh_copy_is_used_once(void **state)
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
            copy->fresh = true; // a false claim
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_in_16_bits_are_close),
        cmocka_unit_test(a_wrong_loss_scale_shows_in_the_gradients),
        cmocka_unit_test(changed_weights_are_seen),
        cmocka_unit_test(a_fresh_copy_is_used_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
