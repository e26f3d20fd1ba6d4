// test_oracle.c - compares the model in C with PyTorch's numbers in
// tests/golden/, which tests/oracle/gpt2_torch.py has computed: logits, loss
// and gradients of a step, then the losses of 50 steps of AdamW with clipping,
// schedule and decay.

#include "model/checkpoint.h"
#include "model/safetensors.h"
#include "optim/lr_schedule.h"
#include "optim/optim.h"

#include "base/base.h"

#include <math.h>
#include <stdlib.h>

#include "tests/test.h"

#define GOLDEN "tests/golden/gpt2_tiny"

enum { STEPS = 50, MAX_N = 1 << 15 };

// PyTorch's numbers, and the model that must compute the same.
struct oracle {
    struct model_config config;
    struct safetensors *expected;
    // n parameters, and batches of `rows` sequences
    size_t n, rows;
    float *params, *grads;
    struct model *model;
    int32_t *x, *y; // of all steps: (STEPS, B, T)
};

static float *expect(const struct oracle *o, const char *name, size_t n)
{
    static float out[MAX_N];
    const struct safetensors_tensor *t = safetensors_find(o->expected, name);
    assert_non_null(t);
    assert_int_equal(t->n, n);
    assert_true(n <= MAX_N);
    if (safetensors_read(o->expected, t, 0, n, out))
        die("%s", fail_message());
    return out;
}

static float setting(const struct oracle *o, const char *key)
{
    const char *text = safetensors_metadata(o->expected, key);
    assert_non_null(text);
    return strtof(text, NULL);
}

// Relative distance |a - b| / |b|.
static double distance(const float *a, const float *b, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(diff / norm);
}

static void load_tokens(struct oracle *o)
{
    size_t T = (size_t)o->config.context;
    const struct safetensors_tensor *t =
        safetensors_find(o->expected, "tokens"); // (STEPS, B, T + 1)
    assert_non_null(t);
    o->rows = t->shape[1];
    size_t all = STEPS * o->rows;
    const float *tokens = expect(o, "tokens", all * (T + 1));
    o->x = mem_alloc(all * T, sizeof *o->x);
    o->y = mem_alloc(all * T, sizeof *o->y);
    assert_true(o->x && o->y);
    for (size_t row = 0; row < all; row++) {
        for (size_t k = 0; k < T; k++) {
            o->x[row * T + k] = (int32_t)tokens[row * (T + 1) + k];
            o->y[row * T + k] = (int32_t)tokens[row * (T + 1) + k + 1];
        }
    }
}

static int open_oracle(void **state)
{
    struct oracle *o = mem_alloc(1, sizeof *o);
    if (!o || checkpoint_config(GOLDEN ".safetensors", &o->config) ||
        safetensors_open(&o->expected, GOLDEN "_expected.safetensors"))
        die("%s", fail_message());
    o->n = model_nparams(&o->config);
    o->params = mem_alloc(o->n, sizeof(float));
    o->grads = mem_alloc(o->n, sizeof(float));
    if (!o->params || !o->grads ||
        checkpoint_read(GOLDEN ".safetensors", &o->config, o->params))
        die("%s", fail_message());
    load_tokens(o);
    struct model_job job = {.config = o->config,
                            .precision = DTYPE_F32,
                            .batch = (int)o->rows,
                            .tokens = o->config.context,
                            .threads = 1,
                            .train = true,
                            .params = o->params,
                            .grads = o->grads};
    if (model_open(&o->model, &job))
        die("%s", fail_message());
    *state = o;
    return 0;
}

static int close_oracle(void **state)
{
    struct oracle *o = *state;
    model_close(&o->model);
    safetensors_close(&o->expected);
    mem_free(o->params);
    mem_free(o->grads);
    mem_free(o->x);
    mem_free(o->y);
    mem_free(o);
    return 0;
}

// Returns the loss of one step. Its gradients are in o->grads.
static float step_loss(struct oracle *o, int step)
{
    size_t at = (size_t)step * o->rows * (size_t)o->config.context;
    struct model_step s = {.x = o->x + at,
                           .y = o->y + at,
                           .step = step,
                           .scale = 1};
    float loss;
    if (model_train(o->model, &s, &loss))
        die("%s", fail_message());
    return loss;
}

static void logits_equal_pytorchs(void **state)
{
    struct oracle *o = *state;
    size_t V = (size_t)o->config.vocab, T = (size_t)o->config.context;
    float logits[1024];
    assert_true(V <= sizeof logits / sizeof *logits);
    const float *expected = expect(o, "logits", o->rows * T * V);
    for (size_t row = 0; row < o->rows; row++) {
        for (size_t n = 1; n <= T; n++) {
            assert_int_equal(model_logits(o->model, o->x + row * T, (int)n,
                                          logits),
                             0);
            const float *wanted = expected + (row * T + n - 1) * V;
            assert_true(distance(logits, wanted, V) < 1e-5);
        }
    }
}

static void loss_and_gradients_equal_pytorchs(void **state)
{
    struct oracle *o = *state;
    float loss = step_loss(o, 0), wanted = *expect(o, "loss", 1);
    assert_true(fabsf(loss / wanted - 1) < 1e-5f);
    double worst = 0;
    for (int i = 0; i < model_ntensors(&o->config); i++) {
        struct tensor t;
        char name[64];
        model_tensor(&o->config, i, &t);
        assert_int_equal(text_into(name, sizeof name, "grad.%s", t.name), 0);
        double d = distance(o->grads + t.off, expect(o, name, t.n), t.n);
        if (!(d < 1e-4))
            die("gradient of %s differs by %g", t.name, d);
        worst = fmax(worst, d);
    }
    print_message("loss %.7g, PyTorch %.7g; worst gradient differs by %.2g\n",
                  loss, wanted, worst);
}

static struct optim_config adamw(const struct oracle *o)
{
    struct optim_config c = {.kind = OPTIM_ADAMW,
                             .beta1 = setting(o, "beta1"),
                             .beta2 = setting(o, "beta2"),
                             .eps = setting(o, "eps"),
                             .weight_decay = setting(o, "weight_decay")};
    for (int i = 0; i < model_ntensors(&o->config); i++) {
        struct tensor t;
        model_tensor(&o->config, i, &t);
        if (t.decay)
            c.decay[c.ndecay++] = (struct optim_range){t.off, t.n, t.shape[0]};
    }
    return c;
}

static void fifty_steps_equal_pytorchs(void **state)
{
    struct oracle *o = *state;
    struct optim_config c = adamw(o);
    struct schedule schedule = {.kind = SCHEDULE_COSINE,
                                .lr = setting(o, "lr"),
                                .min_lr = setting(o, "min_lr"),
                                .warmup = (int)setting(o, "warmup"),
                                .steps = (int)setting(o, "steps")};
    float clip = setting(o, "clip"), *slots[2], losses[STEPS], norms[STEPS];
    for (int i = 0; i < 2; i++) {
        slots[i] = mem_alloc(o->n, sizeof(float));
        assert_non_null(slots[i]);
    }
    for (int step = 0; step < STEPS; step++) {
        losses[step] = step_loss(o, step);
        double sum = optim_sum_squares(o->grads, o->n);
        float scale = optim_clip_scale(sum, 1, clip, &norms[step]);
        optim_update(&c, o->params, slots, o->grads, 0, o->n, step + 1,
                     schedule_lr(&schedule, step), scale);
        model_params_changed(o->model);
    }
    const float *wanted = expect(o, "losses", STEPS);
    for (int step = 0; step < STEPS; step++)
        assert_true(fabsf(losses[step] / wanted[step] - 1) < 1e-3f);
    print_message("loss of step 50: %.7g, PyTorch %.7g\n", losses[STEPS - 1],
                  wanted[STEPS - 1]);
    assert_true(losses[STEPS - 1] < losses[0] - 1); // it has learnt
    assert_true(distance(norms, expect(o, "norms", STEPS), STEPS) < 1e-3);
    mem_free(slots[0]);
    mem_free(slots[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(logits_equal_pytorchs, open_oracle,
                                        close_oracle),
        cmocka_unit_test_setup_teardown(loss_and_gradients_equal_pytorchs,
                                        open_oracle, close_oracle),
        cmocka_unit_test_setup_teardown(fifty_steps_equal_pytorchs, open_oracle,
                                        close_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
