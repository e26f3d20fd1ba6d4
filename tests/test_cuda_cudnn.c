// test_cuda_cudnn.c - attention by cuDNN beside ours on the same random input,
// and training with it. Skipped without a GPU or without cuDNN.
//
// Tolerances, of a number's size plus the tensor's root mean square: 4e-3 in
// fp16 and 3e-2 in bf16, twice that for gradients. Both sides round the
// factors of products. Losses of a small model differ by less than 3e-2.

#include "base/base.h"
#include "base/rng.h"
#include "device/cuda.h"
#include "device/vector.h"
#include "model/cuda/dnn.h"
#include "model/cuda/dnn_attention.h"
#include "model/cuda/kernels_cuda.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

enum { FIRST_PADDED = 91501 }; // older: T must be a multiple of 128

static struct device *gpu;
static struct cuda_model now; // of our operations
static size_t version;        // of cuDNN
static bool small;            // shapes for an emulated GPU
static int tokens = 128;

static const enum dtype formats[] = {DTYPE_F16, DTYPE_BF16};

// ---- tensors on the GPU

static void *drawn(enum dtype t, size_t n, uint64_t key)
{
    void *v = device_alloc(gpu, n, dtype_bytes(t));
    float *x = mem_alloc(n, sizeof *x);
    void *half = mem_alloc(n, dtype_bytes(t));
    assert_true(v && x && half);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(key, i);
    vector_cast(half, t, x, DTYPE_F32, n);
    device_copy(gpu, v, half, n * dtype_bytes(t));
    mem_free(half);
    mem_free(x);
    return v;
}

static void *empty(enum dtype t, size_t n)
{
    void *v = device_alloc(gpu, n, dtype_bytes(t));
    assert_non_null(v);
    return v;
}

static float *fetched(const void *v, enum dtype t, size_t n)
{
    float *x = mem_alloc(n, sizeof *x);
    void *half = mem_alloc(n, dtype_bytes(t));
    assert_true(x && half);
    device_copy(gpu, half, v, n * dtype_bytes(t));
    vector_cast(x, DTYPE_F32, half, t, n);
    mem_free(half);
    return x;
}

static void assert_same_bits(const void *got, const void *want, size_t bytes)
{
    void *a = mem_alloc(bytes, 1), *b = mem_alloc(bytes, 1);
    assert_true(a && b);
    device_copy(gpu, a, got, bytes);
    device_copy(gpu, b, want, bytes);
    assert_memory_equal(a, b, bytes);
    mem_free(a);
    mem_free(b);
}

static void assert_close(const char *what, const void *got, const void *want,
                         enum dtype t, size_t n, double tol)
{
    float *a = fetched(got, t, n), *b = fetched(want, t, n);
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += (double)b[i] * b[i];
    double rms = sqrt(square / (double)n);
    for (size_t i = 0; i < n; i++) {
        double off = fabs((double)a[i] - b[i]);
        bool close = off <= tol * (fabs((double)b[i]) + rms);
        if (!close)
            print_message("%s: element %zu of %zu is %g by cuDNN, %g by ours\n",
                          what, i, n, (double)a[i], (double)b[i]);
        assert_true(close);
    }
    mem_free(a);
    mem_free(b);
}

// ---- operations

// Backward runs again several times, since atomic additions have another order
// only in some runs, and only if many blocks add to one number.
static void compare(enum dtype t, const struct attention *shape)
{
    struct attention ours = *shape, *a = &ours;
    int reruns = a->T < 1024 ? 1 : 10;
    size_t n = (size_t)a->B * (size_t)a->T * (size_t)a->C;
    size_t rows = (size_t)a->B * (size_t)a->T * (size_t)a->NH;
    double tol = t == DTYPE_F16 ? 4e-3 : 3e-2;
    struct dnn_attention *dnn = NULL;
    if (dnn_attention_open(&dnn, gpu, t, a, true))
        print_message("%s\n", fail_message());
    assert_non_null(dnn);
    struct attention shorter = *a;
    shorter.T--;
    assert_true(dnn_attention_fits(dnn, t, a));
    assert_false(dnn_attention_fits(dnn, t, &shorter));

    void *qkv = drawn(t, 3 * n, 1), *dout = drawn(t, n, 2);
    void *out = empty(t, n), *want_out = empty(t, n);
    void *dqkv = empty(t, 3 * n), *want_dqkv = empty(t, 3 * n);
    float *lse = empty(DTYPE_F32, rows), *want_lse = empty(DTYPE_F32, rows);
    float *row_sum = empty(DTYPE_F32, rows), *want_sum = empty(DTYPE_F32, rows);
    ours.scratch = want_sum;
    now.format = t;
    cuda_begin(&now);
    kernels_cuda.attention(want_out, want_lse, qkv, a);
    kernels_cuda.attention_backward(want_dqkv, dout, want_out, want_lse, qkv,
                                    a);
    cuda_end();
    dnn_attention_forward(dnn, out, lse, qkv);
    dnn_attention_backward(dnn, dqkv, row_sum, dout, out, lse, qkv);
    assert_close("out", out, want_out, t, n, tol);
    assert_close("lse", lse, want_lse, DTYPE_F32, rows, tol);
    assert_close("dqkv", dqkv, want_dqkv, t, 3 * n, 2 * tol);
    for (int i = 0; i < reruns; i++) {
        dnn_attention_backward(dnn, want_dqkv, row_sum, dout, out, lse, qkv);
        assert_same_bits(want_dqkv, dqkv, 3 * n * dtype_bytes(t));
    }

    void *all[] = {qkv,       dout, out,      want_out, dqkv,
                   want_dqkv, lse,  want_lse, row_sum,  want_sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        device_free(gpu, all[i]);
    dnn_attention_close(&dnn);
}

static void compare_all(int n, const int shapes[][4])
{
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < n; i++) {
            const int *s = shapes[i];
            struct attention a = {.B = s[0],
                                  .T = s[1],
                                  .C = s[2] * s[3],
                                  .NH = s[2],
                                  .mask = {.keep = 1}};
            if (!small || a.T <= 128)
                compare(formats[f], &a);
        }
}

static void results_are_ours(void **state)
{
    (void)state;
    static const int shapes[][4] = {{2, 128, 2, 32},
                                    {1, 128, 1, 64},
                                    {2, 1024, 12, 64},
                                    {1, 512, 3, 128}};
    compare_all(sizeof shapes / sizeof *shapes, shapes);
}

static void results_of_odd_lengths_are_ours(void **state)
{
    (void)state;
    static const int shapes[][4] = {{2, 64, 2, 32},
                                    {2, 32, 1, 16},
                                    {1, 32, 1, 128},
                                    {1, 45, 2, 32},
                                    {1, 1000, 3, 64}};
    if (version < FIRST_PADDED)
        skip();
    compare_all(sizeof shapes / sizeof *shapes, shapes);
}

// ---- training

enum { BATCH = 2, MOST_TOKENS = 128, VOCAB = 61, STEPS = 2 };

struct trial {
    struct model_job job;
    struct model *model;
    size_t n; // parameters
    int32_t x[BATCH * MOST_TOKENS], y[BATCH * MOST_TOKENS];
};

struct run {
    float loss[STEPS], eval, eval_planned, logits[VOCAB];
    float *grads; // of the last step
    size_t n;
};

static void open_trial(struct trial *t, enum dtype format, bool cudnn)
{
    t->job.precision = format;
    t->job.cudnn = cudnn;
    t->job.batch = BATCH;
    t->job.tokens = tokens;
    t->job.train = true;
    t->job.dev = gpu;
    assert_int_equal(model_preset("micro", &t->job.config), 0);
    t->job.config.vocab = VOCAB;
    t->job.config.layers = 2;
    t->job.config.channels = 64;
    t->job.config.heads = 2;
    t->n = model_nparams(&t->job.config);
    float *init = mem_alloc(t->n, sizeof *init);
    t->job.params = device_alloc(gpu, t->n, sizeof(float));
    t->job.grads = device_alloc(gpu, t->n, sizeof(float));
    assert_true(init && t->job.params && t->job.grads);
    model_init(&t->job.config, 5, init);
    device_copy(gpu, t->job.params, init, t->n * sizeof *init);
    mem_free(init);
    if (model_open(&t->model, &t->job))
        print_message("%s\n", fail_message());
    assert_non_null(t->model);
}

static void step_trial(struct trial *t, struct run *r, int step)
{
    for (int i = 0; i < BATCH * tokens; i++) {
        t->x[i] = (step * 7 + i * i) % VOCAB;
        t->y[i] = (step * 7 + (i + 1) * (i + 1)) % VOCAB;
    }
    struct model_step s = {.x = t->x, .y = t->y, .step = step, .scale = 1};
    assert_int_equal(model_train(t->model, &s, &r->loss[step]), 0);
}

// Ours does the evaluation of a smaller batch and the logits of fewer tokens.
static void close_trial(struct trial *t, struct run *r)
{
    struct model *m = t->model;
    assert_int_equal(model_eval(m, t->x, t->y, BATCH - 1, &r->eval), 0);
    assert_int_equal(model_eval(m, t->x, t->y, BATCH, &r->eval_planned), 0);
    assert_int_equal(model_logits(m, t->x, tokens / 2, r->logits), 0);
    r->grads = fetched(t->job.grads, DTYPE_F32, t->n);
    r->n = t->n;
    model_close(&t->model);
    device_free(gpu, t->job.params);
    device_free(gpu, t->job.grads);
}

static struct run train(enum dtype format, bool cudnn, bool recompute, int tune)
{
    struct run r = {0};
    struct trial t = {.job = {.recompute = recompute, .tune = tune}};
    open_trial(&t, format, cudnn);
    for (int step = 0; step < STEPS; step++)
        step_trial(&t, &r, step);
    close_trial(&t, &r);
    return r;
}

// Compares a training by cuDNN with ours.
static void assert_near(const struct run *ours, const struct run *theirs)
{
    double square = 0, off = 0;
    for (int i = 0; i < STEPS; i++)
        assert_true(fabsf(ours->loss[i] - theirs->loss[i]) <= 3e-2f);
    assert_true(fabsf(ours->eval_planned - theirs->eval_planned) <= 3e-2f);
    for (size_t i = 0; i < ours->n; i++) {
        double d = (double)ours->grads[i] - theirs->grads[i];
        square += (double)ours->grads[i] * ours->grads[i];
        off += d * d;
    }
    assert_true(off > 0 && sqrt(off / square) <= 3e-2);
}

static void assert_same_run(const struct run *a, const struct run *b)
{
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(&a->eval_planned, &b->eval_planned, sizeof(float));
    assert_memory_equal(a->grads, b->grads, a->n * sizeof *a->grads);
}

static void losses_are_ours(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        struct run ours = train(formats[f], false, false, 0);
        struct run theirs = train(formats[f], true, false, 0);
        assert_near(&ours, &theirs);
        assert_true(ours.eval == theirs.eval);
        assert_memory_equal(ours.logits, theirs.logits, sizeof ours.logits);
        mem_free(ours.grads);
        mem_free(theirs.grads);
    }
}

static void timed_products_go_with_it(void **state)
{
    (void)state;
    struct run ours = train(DTYPE_F16, false, false, 0);
    struct run theirs = train(DTYPE_F16, true, false, 2);
    assert_near(&ours, &theirs);
    mem_free(ours.grads);
    mem_free(theirs.grads);
}

static void reruns_have_the_same_bits(void **state)
{
    (void)state;
    struct run a = train(DTYPE_BF16, true, false, 0);
    for (int recompute = 0; recompute < 2; recompute++) {
        struct run b = train(DTYPE_BF16, true, recompute, 0);
        assert_same_run(&a, &b);
        mem_free(b.grads);
    }
    mem_free(a.grads);
}

static void two_models_do_not_disturb_each_other(void **state)
{
    (void)state;
    struct trial t[2] = {0};
    struct run alone[2], both[2] = {0};
    for (int i = 0; i < 2; i++) {
        alone[i] = train(formats[i], true, false, 0);
        open_trial(&t[i], formats[i], true);
    }
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < 2; i++)
            step_trial(&t[i], &both[i], step);
    for (int i = 0; i < 2; i++) { // the second trains on without the first
        close_trial(&t[i], &both[i]);
        if (i == 0)
            step_trial(&t[1], &both[1], STEPS - 1);
        assert_same_run(&alone[i], &both[i]);
        mem_free(alone[i].grads);
        mem_free(both[i].grads);
    }
}

static void heads_of_odd_sizes_are_refused(void **state)
{
    (void)state;
    struct dnn_attention *dnn = NULL;
    struct attention a = {
        .B = 1, .T = 128, .C = 24, .NH = 2, .mask = {.keep = 1}};
    assert_int_equal(dnn_attention_open(&dnn, gpu, DTYPE_F16, &a, true), -1);
    assert_non_null(strstr(fail_message(), "a head has 12 channels"));
    assert_null(dnn);
}

// False if there is no GPU or no cuDNN that attention=cudnn takes. All other
// failures are the tests' to find.
static bool can_run(void)
{
    struct dnn dnn;
    if (device_open(&gpu, "cuda") || dnn_load(&dnn)) {
        print_message("skipped: %s\n", fail_message());
        return false;
    }
    version = dnn.version;
    dnn_close(&dnn);
    int capability = cuda_capability(gpu);
    if (capability < 80 || (capability >= 100 && capability < 120)) {
        print_message("skipped: attention=cudnn is not for GPUs of compute "
                      "capability %d.%d\n",
                      capability / 10, capability % 10);
        return false;
    }
    return true;
}

// The argument `small` leaves out large shapes, for an emulated GPU.
int main(int argc, char **argv)
{
    if (!can_run())
        return TEST_SKIPPED;
    if (argc > 1 && !strcmp(argv[1], "small")) {
        small = true;
        tokens = 32;
    }
    now.dev = gpu;
    now.queue = device_handle(gpu, DEVICE_COMPUTE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_ours),
        cmocka_unit_test(results_of_odd_lengths_are_ours),
        cmocka_unit_test(losses_are_ours),
        cmocka_unit_test(timed_products_go_with_it),
        cmocka_unit_test(reruns_have_the_same_bits),
        cmocka_unit_test(two_models_do_not_disturb_each_other),
        cmocka_unit_test(heads_of_odd_sizes_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&gpu);
    return failed;
}
