// test_cuda_train.c - compares whole steps on the GPU with the same steps on
// the CPU: 50 losses in every format, evaluation, logits, dropout, accumulation
// and the update. Skipped on a machine without a GPU.
//
// The model is a nano GPT-2 that learns a short sequence by heart. Its losses,
// of about 4 nats a token, may differ by 1e-3 in fp32, by 1e-2 in TF32 and
// fp16, and by 3e-2 in bf16.

#include "base/base.h"
#include "base/rng.h"
#include "device/cuda.h"
#include "device/vector.h"
#include "model/cuda/kernels_cuda.h"
#include "model/cuda/peak.h"
#include "model/cuda/product_cuda.h"
#include "model/model.h"
#include "optim/rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static struct device *gpu, *cpu;

// ---- rows sorted by token (needs no GPU)

static void tokens_are_sorted(void **state)
{
    (void)state;
    enum { N = 500, V = 40 };
    static int32_t x[N], order[N], start[N + 1], token[N], scratch[V + 1];
    for (int i = 0; i < N; i++)
        x[i] = (int32_t)(rng_u64(1, (uint64_t)i) % V *
                         (rng_u64(2, (uint64_t)i) % 2));
    struct words all = {0, V}, some = {7, 20};
    for (int k = 0; k < 2; k++) {
        struct words here = k ? some : all;
        int kinds = cuda_tokens_sort(order, start, token, scratch, x, N, here);
        int seen = 0, expected = 0;
        for (int i = 0; i < N; i++)
            expected += x[i] >= here.first && x[i] < here.first + here.n;
        assert_int_equal(start[kinds], expected);
        assert_true(k ? expected < N : expected == N);
        for (int j = 0; j < kinds; j++)
            for (int i = start[j]; i < start[j + 1]; i++, seen++) {
                assert_int_equal(x[order[i]], here.first + token[j]);
                assert_true(i == start[j] || order[i] > order[i - 1]);
            }
        assert_int_equal(seen, expected);
        for (int v = 0; v <= V; v++)
            assert_int_equal(scratch[v], 0);
    }
}

// ---- the update, to the bit

static void updates(const struct optim_config *c, size_t n, enum dtype format)
{
    struct half_copy copy[2] = {{.format = format}, {.format = format}};
    void *copy_back = mem_alloc(n, sizeof(uint16_t));
    struct rule rules[2] = {{0}};
    struct device *devices[2] = {cpu, gpu};
    float *p[2], *g[2], norm[2], *back = mem_alloc(n, sizeof *back);
    float *start = mem_alloc(n, sizeof *start);
    assert_true(back && start && copy_back);
    for (int i = 0; i < 2; i++) {
        copy[i].at = device_alloc(devices[i], n, sizeof(uint16_t));
        assert_non_null(copy[i].at);
        p[i] = device_alloc(devices[i], n, sizeof(float));
        g[i] = device_alloc(devices[i], n, sizeof(float));
        assert_true(p[i] && g[i]);
        assert_int_equal(rule_open(&rules[i], devices[i], c, n, NULL), 0);
    }
    for (int step = 1; step <= 4; step++) {
        for (size_t k = 0; k < n; k++)
            start[k] = (float)rng_normal((uint64_t)step, k);
        if (step == 3) // one overflow: the step is skipped
            start[n / 2] = INFINITY;
        for (int i = 0; i < 2; i++) {
            struct rule_in in = {.step = step,
                                 .lr = 0.01f,
                                 .scale = 0.5f,
                                 .clip = step % 2 ? 1 : 0,
                                 .copy = format == DTYPE_F32 ? NULL : &copy[i]};
            device_copy(devices[i], g[i], start, n * sizeof *start);
            assert_int_equal(rule_step(&rules[i], p[i], g[i], &in, &norm[i]),
                             0);
        }
        device_copy(gpu, back, p[1], n * sizeof *back);
        assert_int_equal(float_bits(norm[1]), float_bits(norm[0]));
        assert_memory_equal(back, p[0], n * sizeof *back);
        assert_int_equal(copy[1].fresh, copy[0].fresh);
        device_copy(gpu, copy_back, copy[1].at, n * sizeof(uint16_t));
        assert_memory_equal(copy_back, copy[0].at, n * sizeof(uint16_t));
    }
    for (int i = 0; i < 2; i++) {
        device_free(devices[i], copy[i].at);
        rule_close(&rules[i]);
        device_free(devices[i], p[i]);
        device_free(devices[i], g[i]);
    }
    mem_free(copy_back);
    mem_free(back);
    mem_free(start);
}

static void updates_equal_the_cpus(void **state)
{
    (void)state;
    struct optim_config c = {.beta1 = 0.9f,
                             .beta2 = 0.95f,
                             .eps = 1e-8f,
                             .weight_decay = 0.1f,
                             .ndecay = 3,
                             .decay = {{2, 5, 0},
                                       {1024, 1, 0},
                                       {2000, 70000, 0}}};
    static const size_t sizes[] = {1, 1000, 65536, 200003};
    for (int i = 0; i < 4; i++) {
        c.kind = OPTIM_ADAMW;
        updates(&c, sizes[i], DTYPE_F32);
        updates(&c, sizes[i], DTYPE_BF16);
        c.kind = OPTIM_SGD;
        c.momentum = i % 2 ? 0.9f : 0;
        updates(&c, sizes[i], DTYPE_F16);
    }
}

// ---- whole steps

struct side {
    struct device *dev;
    struct model *model;
    struct rule rule;
    float *params, *grads;
};

enum { BATCH = 4, TOKENS = 64, STEPS = 50, VOCAB = 61 };

// The command line can make them smaller, for an emulated GPU.
static int steps = STEPS, layers = 4, batch = BATCH;

static struct optim_config optim = {.kind = OPTIM_ADAMW,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .eps = 1e-8f};

static void side_open(struct side *s, struct device *d, enum dtype t, bool tf32,
                      bool recompute, float dropout)
{
    struct model_job job = {.precision = t,
                            .batch = batch,
                            .tokens = TOKENS,
                            .train = true,
                            .seed = 3,
                            .dev = d,
                            .tf32 = tf32,
                            .recompute = recompute};
    assert_int_equal(model_preset("nano", &job.config), 0);
    job.config.vocab = VOCAB;
    job.config.layers = layers;
    job.config.dropout = dropout;
    size_t n = model_nparams(&job.config);
    float *init = mem_alloc(n, sizeof *init);
    *s = (struct side){.dev = d};
    s->params = job.params = device_alloc(d, n, sizeof(float));
    s->grads = job.grads = device_alloc(d, n, sizeof(float));
    assert_true(init && s->params && s->grads);
    model_init(&job.config, 5, init);
    device_copy(d, s->params, init, n * sizeof *init);
    mem_free(init);
    assert_int_equal(model_open(&s->model, &job), 0);
    assert_int_equal(rule_open(&s->rule, d, &optim, n, NULL), 0);
}

static void side_close(struct side *s)
{
    model_close(&s->model);
    rule_close(&s->rule);
    device_free(s->dev, s->params);
    device_free(s->dev, s->grads);
}

static void batch_of(int32_t *x, int32_t *y, int step)
{
    for (int i = 0; i < BATCH * TOKENS; i++) { // a sequence that can be learnt
        int at = step % 4 * 7 + i;
        x[i] = (int32_t)(at * at % VOCAB);
        y[i] = (int32_t)((at + 1) * (at + 1) % VOCAB);
    }
}

// The launch of a kernel would fail with this batch. model_open() says so
// first.
static void too_large_batches_are_refused(void **state)
{
    (void)state;
    struct model *m = NULL;
    struct model_job job = {.batch = CUDA_MAX_GRID + 1,
                            .tokens = 1,
                            .dev = gpu};
    assert_int_equal(model_preset("nano", &job.config), 0);
    job.config.vocab = VOCAB;
    job.params = device_alloc(gpu, model_nparams(&job.config), sizeof(float));
    assert_non_null(job.params);
    assert_int_equal(model_open(&m, &job), -1);
    assert_non_null(strstr(fail_message(), "of each"));
    device_free(gpu, job.params);
}

// A step has two micro-batches: the second adds to the gradients of the first.
static float one_step(struct side *s, int step, float scale)
{
    int32_t x[BATCH * TOKENS], y[BATCH * TOKENS];
    float loss = 0, norm;
    for (int micro = 0; micro < 2; micro++) {
        float one;
        batch_of(x, y, 2 * step + micro);
        struct model_step m = {.x = x,
                               .y = y,
                               .step = step,
                               .micro = micro,
                               .scale = scale,
                               .accumulate = micro > 0};
        assert_int_equal(model_train(s->model, &m, &one), 0);
        loss += one / 2;
    }
    struct rule_in in = {.step = step + 1,
                         .lr = 1e-3f,
                         .scale = 0.5f / scale,
                         .clip = 1};
    assert_int_equal(rule_step(&s->rule, s->params, s->grads, &in, &norm), 0);
    assert_true(isfinite(norm));
    model_params_changed(s->model);
    return loss;
}

static void train_both(enum dtype t, bool tf32, float dropout, double tol)
{
    struct side a, b;
    float first = 0, last = 0;
    side_open(&a, cpu, t, false, false, dropout);
    side_open(&b, gpu, t, tf32, false, dropout);
    for (int step = 0; step < steps; step++) {
        float scale = t == DTYPE_F16 ? 1024 : 1;
        float want = one_step(&a, step, scale), got = one_step(&b, step, scale);
        if (!(fabsf(want - got) <= tol))
            print_message("%s%s, step %d: %g, on the CPU %g\n", dtype_name(t),
                          tf32 ? " (tf32)" : "", step, (double)got,
                          (double)want);
        assert_true(fabsf(want - got) <= tol);
        first = step ? first : got;
        last = got;
    }
    if (steps >= STEPS)
        assert_true(last < first - 0.5f); // it has learnt
    int32_t x[BATCH * TOKENS], y[BATCH * TOKENS];
    float want, got, logits[2][VOCAB];
    batch_of(x, y, 0);
    assert_int_equal(model_eval(a.model, x, y, batch - 1, &want), 0);
    assert_int_equal(model_eval(b.model, x, y, batch - 1, &got), 0);
    assert_true(fabsf(want - got) <= tol);
    assert_int_equal(model_logits(a.model, x, 37, logits[0]), 0);
    assert_int_equal(model_logits(b.model, x, 37, logits[1]), 0);
    for (int v = 0; v < VOCAB; v++)
        assert_true(fabsf(logits[0][v] - logits[1][v]) <= 20 * tol);
    side_close(&a);
    side_close(&b);
}

static void fifty_steps_equal_the_cpus(void **state)
{
    (void)state;
    bool new = cuda_capability(gpu) >= 80;
    train_both(DTYPE_F32, false, 0, 1e-3);
    train_both(DTYPE_F32, false, 0.1f, 1e-3); // the same numbers are dropped
    train_both(DTYPE_F16, false, 0, 1e-2);
    if (new)
        train_both(DTYPE_F32, true, 0, 1e-2);
    if (new)
        train_both(DTYPE_BF16, false, 0, 3e-2);
}

static void reruns_are_the_same(void **state)
{
    (void)state;
    float loss[2][10] = {{0}};
    for (int run = 0; run < 2; run++) {
        struct side s;
        side_open(&s, gpu, DTYPE_F16, false, false, 0.1f);
        for (int step = 0; step < steps && step < 10; step++)
            loss[run][step] = one_step(&s, step, 1024);
        side_close(&s);
    }
    assert_memory_equal(loss[0], loss[1], sizeof loss[0]);
}

// recompute= computes layers a second time instead of keeping their results.
// The gradients are the same.
static void recompute_has_the_same_bits(void **state)
{
    (void)state;
    float *grads[2], loss[2];
    size_t n = 0;
    int before = layers;
    layers = layers > 2 ? layers : 2;
    for (int twice = 0; twice < 2; twice++) {
        struct side s;
        side_open(&s, gpu, DTYPE_F32, false, twice, 0.1f);
        loss[twice] = one_step(&s, 0, 1);
        n = s.rule.n;
        grads[twice] = mem_alloc(n, sizeof(float));
        assert_non_null(grads[twice]);
        device_copy(gpu, grads[twice], s.grads, n * sizeof(float));
        side_close(&s);
    }
    layers = before;
    assert_true(loss[0] == loss[1]);
    assert_memory_equal(grads[0], grads[1], n * sizeof(float));
    mem_free(grads[0]);
    mem_free(grads[1]);
}

static void data_sheets_are_found(void **state)
{
    (void)state;
    assert_true(cuda_sheet("NVIDIA H200", DTYPE_BF16, false) == 989.5e12);
    assert_true(cuda_sheet("NVIDIA H200 NVL", DTYPE_F16, false) == 835.5e12);
    assert_true(cuda_sheet("NVIDIA H100 80GB HBM3", DTYPE_F32, true) ==
                494.5e12);
    assert_true(cuda_sheet("NVIDIA A100-SXM4-80GB", DTYPE_F32, false) ==
                19.5e12);
    assert_true(cuda_sheet("NVIDIA A10", DTYPE_BF16, false) == 125e12);
    assert_true(cuda_sheet("NVIDIA A10G", DTYPE_BF16, false) == 0);
    assert_true(cuda_sheet("Tesla T4", DTYPE_BF16, false) == 0);
}

static void a_peak_is_measured(void **state)
{
    (void)state;
    struct model_job job = {.dev = gpu, .precision = DTYPE_F16};
    struct model_peak peak;
    assert_int_equal(model_peak(&job, &peak), 0);
    assert_true(peak.measured > 0 && *peak.device);
    job.dev = cpu;
    assert_int_equal(model_peak(&job, &peak), 0);
    assert_true(peak.measured == 0 && peak.sheet == 0);
}

// Arguments: steps, layers, and sequences of a batch.
int main(int argc, char **argv)
{
    if (argc > 3) {
        steps = atoi(argv[1]);
        layers = atoi(argv[2]);
        batch = atoi(argv[3]);
    }
    const struct CMUnitTest host[] = {cmocka_unit_test(data_sheets_are_found),
                                      cmocka_unit_test(tokens_are_sorted)};
    int failed = cmocka_run_group_tests(host, NULL, NULL);
    if (failed)
        return failed;
    if (device_open(&gpu, "cuda") || device_open(&cpu, "cpu")) {
        print_message("skipped: %s\n", fail_message());
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peak_is_measured),
        cmocka_unit_test(updates_equal_the_cpus),
        cmocka_unit_test(too_large_batches_are_refused),
        cmocka_unit_test(fifty_steps_equal_the_cpus),
        cmocka_unit_test(reruns_are_the_same),
        cmocka_unit_test(recompute_has_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
