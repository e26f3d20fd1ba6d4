// test_cuda_tune.c - cuBLASLt offers several algorithms for a shape, and the
// fastest is kept. With EMULATED_CUBLASLT=clocked the emulation sets the clock:
// the algorithms take 50, 40, 70, 20, -, 30, 60 and 80 minutes. The one marked
// "-" cannot run.

#include "base/base.h"
#include "base/rng.h"
#include "device/device.h"
#include "model/cuda/kernels_cuda.h"
#include "model/cuda/product_cuda.h"
#include "tests/emulated_cuda/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

enum { M = 16, N = 24, K = 32, FIRST = 0, FASTEST = 3 };

static struct device *gpu;

struct tensors {
    float *a, *b, *bias, *pre, *out, *bias_grad, *partial;
};

static float *drawn(size_t n, uint64_t key)
{
    float host[K * N], *v = device_alloc(gpu, n, sizeof *v);
    assert_true(v && n <= K * N);
    for (size_t i = 0; i < n; i++)
        host[i] = (float)rng_below(key, i, 9) - 4; // sums are exact
    device_copy(gpu, v, host, n * sizeof *v);
    return v;
}

static void draw(struct tensors *t)
{
    *t = (struct tensors){drawn(M * K, 1), drawn(K * N, 2), drawn(N, 3),
                          drawn(M * N, 4), drawn(M * N, 5), drawn(N, 6),
                          drawn(1, 7)};
    device_free(gpu, t->partial);
    t->partial = device_alloc(gpu, cuda_partial(N), sizeof(float));
    assert_non_null(t->partial);
}

static void drop(struct tensors *t)
{
    float *all[] = {t->a,   t->b,         t->bias,   t->pre,
                    t->out, t->bias_grad, t->partial};
    for (int i = 0; i < 7; i++)
        device_free(gpu, all[i]);
}

static struct cuda_product *opened(const char *how, const struct tensors *t,
                                   int algorithms, bool tf32)
{
    struct cuda_product *p = NULL;
    setenv("EMULATED_CUBLASLT", how, 1);
    assert_int_equal(cuda_product_open(&p, gpu, DTYPE_F32, tf32, t->partial),
                     0);
    assert_int_equal(cuda_product_time(p, algorithms), 0);
    return p;
}

static struct product_job job_of(const struct tensors *t,
                                 enum epilogue epilogue, bool add)
{
    return (struct product_job){.m = M,
                                .n = N,
                                .k = K,
                                .a = t->a,
                                .b = t->b,
                                .out = t->out,
                                .out_fp32 = true,
                                .add = add,
                                .epilogue = epilogue,
                                .bias = t->bias,
                                .pre = t->pre,
                                .bias_grad = t->bias_grad};
}

// Runs a product of a known shape again, and checks which algorithm runs it.
static void runs_by(struct cuda_product *p, const struct tensors *t,
                    enum epilogue epilogue, bool add, int nth, bool fused)
{
    struct product_job j = job_of(t, epilogue, add);
    bool was_fused;
    cuda_product_run(p, &j);
    device_finish(gpu);
    assert_int_equal(emulated_cuda_algorithm(&was_fused), nth);
    assert_int_equal(was_fused, fused);
}

static void the_fastest_that_runs_is_kept(void **state)
{
    (void)state;
    struct tensors t;
    draw(&t);
    struct cuda_product *p = opened("clocked", &t, 8, true);
    for (int again = 0; again < 2; again++) {
        runs_by(p, &t, EPILOGUE_BIAS, false, FASTEST, true);
        runs_by(p, &t, EPILOGUE_GELU, false, FASTEST, true);
        runs_by(p, &t, EPILOGUE_DGELU, false, FASTEST, true);
        runs_by(p, &t, EPILOGUE_NONE, false, FASTEST, false);
        runs_by(p, &t, EPILOGUE_NONE, true, FASTEST, false);
    }
    cuda_product_close(&p);
    p = opened("clocked", &t, 3, true); // of 50, 40 and 70
    runs_by(p, &t, EPILOGUE_BIAS, false, 1, true);
    cuda_product_close(&p);
    drop(&t);
}

// cuBLASLt's epilogue is used if it is faster than a kernel of ours. It is
// never used if the gradient must be added: it cannot add.
static void bias_gradients_use_the_faster_way(void **state)
{
    (void)state;
    struct tensors t;
    draw(&t);
    for (int fused = 0; fused < 2; fused++) {
        struct cuda_product *p =
            opened(fused ? "clocked_fused" : "clocked", &t, 8, true);
        runs_by(p, &t, EPILOGUE_BIAS_GRAD, false, FASTEST, fused);
        runs_by(p, &t, EPILOGUE_BIAS_GRAD, true, FASTEST, false);
        cuda_product_close(&p);
    }
    drop(&t);
}

// Without timing, every run takes cuBLASLt's first algorithm, so that repeated
// runs have the same bits.
static void without_timing_the_first_is_taken(void **state)
{
    (void)state;
    struct tensors t;
    draw(&t);
    for (int again = 0; again < 2; again++) {
        struct cuda_product *p = opened("clocked", &t, 0, true);
        runs_by(p, &t, EPILOGUE_BIAS, false, FIRST, true);
        runs_by(p, &t, EPILOGUE_BIAS_GRAD, false, FIRST, false);
        cuda_product_close(&p);
    }
    drop(&t);
}

struct result {
    float out[M * N], pre[M * N], bias_grad[N];
};

// cuBLASLt's GELU is less exact than fp32.
static void gelu_in_fp32_is_a_kernel(void **state)
{
    (void)state;
    struct tensors t;
    draw(&t);
    for (int timed = 0; timed <= 8; timed += 8) {
        struct cuda_product *p = opened("clocked", &t, timed, false);
        int nth = timed ? FASTEST : FIRST;
        runs_by(p, &t, EPILOGUE_BIAS, false, nth, true);
        runs_by(p, &t, EPILOGUE_GELU, false, nth, false);
        runs_by(p, &t, EPILOGUE_DGELU, false, nth, false);
        cuda_product_close(&p);
    }
    drop(&t);
}

// Runs a product with the epilogue on the same numbers every time, and then
// again with `add` if that is possible.
static void results(struct result *r, const char *how, int algorithms,
                    enum epilogue epilogue)
{
    struct tensors t;
    draw(&t);
    struct cuda_product *p = opened(how, &t, algorithms, true);
    bool adds = epilogue == EPILOGUE_NONE || epilogue == EPILOGUE_BIAS_GRAD;
    for (int add = 0; add <= adds; add++) {
        struct product_job j = job_of(&t, epilogue, add);
        cuda_product_run(p, &j);
    }
    device_copy(gpu, r->out, t.out, sizeof r->out);
    device_copy(gpu, r->pre, t.pre, sizeof r->pre);
    device_copy(gpu, r->bias_grad, t.bias_grad, sizeof r->bias_grad);
    cuda_product_close(&p);
    drop(&t);
}

static void timing_changes_no_result(void **state)
{
    (void)state;
    for (int e = EPILOGUE_NONE; e <= EPILOGUE_BIAS_GRAD; e++) {
        struct result plain, timed, fused;
        results(&plain, "clocked", 0, (enum epilogue)e);
        results(&timed, "clocked", 8, (enum epilogue)e);
        results(&fused, "clocked_fused", 8, (enum epilogue)e);
        assert_memory_equal(&plain, &timed, sizeof plain);
        assert_memory_equal(&plain, &fused, sizeof plain);
    }
}

int main(void)
{
    if (device_open(&gpu, "cuda"))
        die("%s", fail_message());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_that_runs_is_kept),
        cmocka_unit_test(bias_gradients_use_the_faster_way),
        cmocka_unit_test(without_timing_the_first_is_taken),
        cmocka_unit_test(gelu_in_fp32_is_a_kernel),
        cmocka_unit_test(timing_changes_no_result),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&gpu);
    return failed;
}
