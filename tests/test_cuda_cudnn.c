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
#include "model/cuda/dnn_attention.h"
#include "model/cuda/kernels_cuda.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "tests/test.h"

static struct device *gpu;
static void *queue;

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
    assert_int_equal(device_copy(gpu, v, half, n * dtype_bytes(t)), 0);
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
    assert_int_equal(device_copy(gpu, half, v, n * dtype_bytes(t)), 0);
    vector_cast(x, DTYPE_F32, half, t, n);
    mem_free(half);
    return x;
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

static void compare(const struct cuda_attention *a)
{
    enum dtype t = a->format;
    size_t n = (size_t)a->B * (size_t)a->T * (size_t)a->C;
    size_t rows = (size_t)a->B * (size_t)a->T * (size_t)a->NH;
    double tol = t == DTYPE_F16 ? 4e-3 : 3e-2;
    struct dnn_attention *dnn = NULL;
    if (dnn_attention_open(&dnn, gpu, a, true))
        print_message("%s\n", fail_message());
    assert_non_null(dnn);
    struct cuda_attention shorter = *a;
    shorter.T--;
    assert_true(dnn_attention_fits(dnn, a));
    assert_false(dnn_attention_fits(dnn, &shorter));

    void *qkv = drawn(t, 3 * n, 1), *dout = drawn(t, n, 2);
    void *out = empty(t, n), *want_out = empty(t, n);
    void *dqkv = empty(t, 3 * n), *want_dqkv = empty(t, 3 * n);
    float *lse = empty(DTYPE_F32, rows), *want_lse = empty(DTYPE_F32, rows);
    float *row_sum = empty(DTYPE_F32, rows), *want_sum = empty(DTYPE_F32, rows);
    cuda_attention(queue, want_out, want_lse, qkv, a);
    cuda_attention_backward(queue, want_dqkv, want_sum, dout, want_out,
                            want_lse, qkv, a);
    dnn_attention_forward(dnn, out, lse, qkv);
    dnn_attention_backward(dnn, dqkv, row_sum, dout, out, lse, qkv);
    assert_close("out", out, want_out, t, n, tol);
    assert_close("lse", lse, want_lse, DTYPE_F32, rows, tol);
    assert_close("dqkv", dqkv, want_dqkv, t, 3 * n, 2 * tol);
    dnn_attention_backward(dnn, want_dqkv, row_sum, dout, out, lse, qkv);
    assert_close("dqkv, again", dqkv, want_dqkv, t, 3 * n, 0);

    void *all[] = {qkv,       dout, out,      want_out, dqkv,
                   want_dqkv, lse,  want_lse, row_sum,  want_sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        device_free(gpu, all[i]);
    dnn_attention_close(&dnn);
}

static void results_are_ours(void **state)
{
    (void)state;
    static const int shapes[][4] = {{2, 64, 2, 32},
                                    {1, 128, 1, 64},
                                    {2, 32, 1, 16},
                                    {1, 32, 1, 128}};
    for (int f = 0; f < 2; f++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const int *s = shapes[i];
            struct cuda_attention a = {.B = s[0],
                                       .T = s[1],
                                       .C = s[2] * s[3],
                                       .NH = s[2],
                                       .format = formats[f],
                                       .mask = {.keep = 1}};
            compare(&a);
        }
}

// ---- training

enum { BATCH = 2, TOKENS = 32, VOCAB = 61, STEPS = 2 };

struct run {
    float loss[STEPS], eval;
    float *grads; // of the last step
    size_t n;
};

static struct run train(enum dtype t, bool cudnn, bool recompute)
{
    struct model_job job = {.precision = t,
                            .batch = BATCH,
                            .tokens = TOKENS,
                            .train = true,
                            .dev = gpu,
                            .cudnn = cudnn,
                            .recompute = recompute};
    int32_t x[BATCH * TOKENS], y[BATCH * TOKENS];
    struct model *m = NULL;
    assert_int_equal(model_preset("nano", &job.config), 0);
    job.config.vocab = VOCAB;
    job.config.layers = 2;
    job.config.channels = 64;
    job.config.heads = 2;
    struct run r = {.n = model_nparams(&job.config)};
    float *init = mem_alloc(r.n, sizeof *init);
    job.params = device_alloc(gpu, r.n, sizeof(float));
    job.grads = device_alloc(gpu, r.n, sizeof(float));
    assert_true(init && job.params && job.grads);
    model_init(&job.config, 5, init);
    assert_int_equal(device_copy(gpu, job.params, init, r.n * sizeof *init), 0);
    assert_int_equal(model_open(&m, &job), 0);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH * TOKENS; i++) {
            x[i] = (step * 7 + i * i) % VOCAB;
            y[i] = (step * 7 + (i + 1) * (i + 1)) % VOCAB;
        }
        struct model_step s = {.x = x, .y = y, .step = step, .scale = 1};
        assert_int_equal(model_train(m, &s, &r.loss[step]), 0);
    }
    // A batch of another size: our own kernels compute its attention.
    assert_int_equal(model_eval(m, x, y, BATCH - 1, &r.eval), 0);
    r.grads = fetched(job.grads, DTYPE_F32, r.n);
    model_close(&m);
    device_free(gpu, job.params);
    device_free(gpu, job.grads);
    mem_free(init);
    return r;
}

static void losses_are_ours(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        struct run ours = train(formats[f], false, false);
        struct run theirs = train(formats[f], true, false);
        double square = 0, off = 0;
        for (int i = 0; i < STEPS; i++)
            assert_true(fabsf(ours.loss[i] - theirs.loss[i]) <= 3e-2f);
        assert_true(ours.eval == theirs.eval);
        for (size_t i = 0; i < ours.n; i++) {
            double d = (double)ours.grads[i] - theirs.grads[i];
            square += (double)ours.grads[i] * ours.grads[i];
            off += d * d;
        }
        assert_true(off > 0 && sqrt(off / square) <= 3e-2);
        mem_free(ours.grads);
        mem_free(theirs.grads);
    }
}

static void reruns_have_the_same_bits(void **state)
{
    (void)state;
    struct run a = train(DTYPE_BF16, true, false);
    for (int recompute = 0; recompute < 2; recompute++) {
        struct run b = train(DTYPE_BF16, true, recompute);
        assert_memory_equal(a.loss, b.loss, sizeof a.loss);
        assert_memory_equal(a.grads, b.grads, a.n * sizeof *a.grads);
        mem_free(b.grads);
    }
    mem_free(a.grads);
}

static void heads_of_odd_sizes_are_refused(void **state)
{
    (void)state;
    struct dnn_attention *dnn = NULL;
    struct cuda_attention a = {.B = 1,
                               .T = 128,
                               .C = 24,
                               .NH = 2,
                               .format = DTYPE_F16,
                               .mask = {.keep = 1}};
    assert_int_equal(dnn_attention_open(&dnn, gpu, &a, true), -1);
    assert_non_null(strstr(fail_message(), "a head has 12 channels"));
    assert_null(dnn);
}

int main(void)
{
    struct dnn_attention *dnn = NULL;
    struct cuda_attention a = {.B = 1,
                               .T = 128,
                               .C = 64,
                               .NH = 1,
                               .format = DTYPE_F16,
                               .mask = {.keep = 1}};
    if (device_open(&gpu, "cuda") || dnn_attention_open(&dnn, gpu, &a, true)) {
        print_message("skipped: %s\n", fail_message());
        return TEST_SKIPPED;
    }
    dnn_attention_close(&dnn);
    queue = device_handle(gpu, DEVICE_COMPUTE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_ours),
        cmocka_unit_test(losses_are_ours),
        cmocka_unit_test(reruns_have_the_same_bits),
        cmocka_unit_test(heads_of_odd_sizes_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&gpu);
    return failed;
}
