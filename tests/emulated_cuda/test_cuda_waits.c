// test_cuda_waits.c - the host waits for two numbers of a step, with the rest
// of the work queued behind them.
//
// The emulated GPU does nothing before somebody waits, and then no more than
// what lies before the event waited for: what is left tells how far the host
// has let it come. (A GPU goes on by itself; there nothing of this can be
// seen.) And the host sleeps in both waits.

#include "base/base.h"
#include "device/device.h"
#include "model/model.h"
#include "optim/rule.h"
#include "tests/emulated_cuda/runtime.h"

#include <math.h>

#include "tests/test.h"

enum { BATCH = 2, TOKENS = 16, VOCAB = 20, LAYERS = 2, MOST = 100000 };

// How many commands of the compute queue are still to be done.
static int left(struct device *d)
{
    struct device_event e;
    int n = 0, reached = 0;
    assert_int_equal(device_event_open(d, &e), 0);
    assert_int_equal(device_record(d, &e, DEVICE_COMPUTE), 0);
    for (; !reached && n < MOST; n++) // each look does one of them
        reached = device_reached(d, &e);
    device_event_close(d, &e);
    assert_int_equal(reached, 1);
    return n - 1; // the event is a command, too
}

static void the_rest_is_queued_behind_what_is_waited_for(void **state)
{
    (void)state;
    static const struct optim_config adamw = {.kind = OPTIM_ADAMW,
                                              .beta1 = 0.9f,
                                              .beta2 = 0.95f,
                                              .eps = 1e-8f};
    struct model_job job = {.config = {LAYERS, 2, 32, TOKENS, VOCAB, 0},
                            .batch = BATCH,
                            .tokens = TOKENS,
                            .train = true};
    struct model *model = NULL;
    struct rule rule = {0};
    int32_t x[BATCH * TOKENS], y[BATCH * TOKENS];
    size_t n = model_nparams(&job.config);
    float *init = mem_alloc(n, sizeof *init), loss, norm;
    assert_non_null(init);
    assert_int_equal(device_open(&job.dev, "cuda"), 0);
    job.params = device_alloc(job.dev, n, sizeof(float));
    job.grads = device_alloc(job.dev, n, sizeof(float));
    model_init(&job.config, 1, init);
    assert_int_equal(device_copy(job.dev, job.params, init, n * sizeof *init),
                     0);
    assert_int_equal(model_open(&model, &job), 0);
    assert_int_equal(rule_open(&rule, job.dev, &adamw, n), 0);
    for (int i = 0; i < BATCH * TOKENS; i++)
        x[i] = i % VOCAB, y[i] = (i + 1) % VOCAB;
    int spins = emulated_cuda_spins();
    for (int step = 0; step < 2; step++) {
        struct model_step s = {.x = x, .y = y, .step = step, .scale = 1};
        struct rule_in in = {.step = step + 1, .lr = 1e-3f, .scale = 1};
        assert_int_equal(model_train(model, &s, &loss), 0);
        assert_true(fabsf(loss - logf(VOCAB)) < 1);
        assert_true(left(job.dev) > 8 * LAYERS); // backward's kernels
        assert_int_equal(rule_step(&rule, job.params, job.grads, &in, &norm),
                         0);
        assert_true(norm > 0);
        assert_true(left(job.dev) > 0); // the update
        assert_int_equal(emulated_cuda_spins(), spins);
    }
    model_close(&model);
    rule_close(&rule);
    device_free(job.dev, job.params);
    device_free(job.dev, job.grads);
    device_close(&job.dev);
    mem_free(init);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_is_queued_behind_what_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
