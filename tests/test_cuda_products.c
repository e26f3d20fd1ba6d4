// test_cuda_products.c - compares matrix products on the GPU, with every
// epilogue, to sums in double precision. Also checks that cuBLASLt is found,
// and how we call it. Skipped on a machine without a GPU.

#include "base/base.h"
#include "base/rng.h"
#include "device/cuda.h"
#include "device/vector.h"
#include "model/cuda/kernels_cuda.h"
#include "model/cuda/product_cuda.h"
#include "model/cuda/routine.h"

#include <dlfcn.h>
#include <math.h>

#include "tests/test.h"

static struct device *gpu;

// Finds the library and its functions. This needs no GPU, but it does need the
// CUDA runtime of this build. The library stays loaded after lt_close().
static void cublaslt_is_found(void **state)
{
    (void)state;
    struct lt lt;
    if (lt_open(&lt))
        print_message("%s\n", fail_message());
    assert_non_null(lt.library);
    assert_non_null(lt.MatrixLayoutDestroy);
    const void *function = (const void *)(uintptr_t)lt.MatrixLayoutDestroy;
    lt_close(&lt);
    Dl_info where;
    assert_true(dladdr(function, &where));
}

enum { M = 48, N = 72, K = 40 };

struct operand {
    float *host; // rounded to the format
    void *dev;
};

static struct operand operand(enum dtype t, size_t n, uint64_t key)
{
    struct operand o = {mem_alloc(n, sizeof(float)),
                        device_alloc(gpu, n, dtype_bytes(t))};
    void *narrow = mem_alloc(n, dtype_bytes(t));
    assert_true(o.host && o.dev && narrow);
    for (size_t i = 0; i < n; i++)
        o.host[i] = (float)rng_normal(key, i);
    vector_cast(narrow, t, o.host, DTYPE_F32, n);
    vector_cast(o.host, DTYPE_F32, narrow, t, n);
    device_copy(gpu, o.dev, narrow, n * dtype_bytes(t));
    mem_free(narrow);
    return o;
}

static void operand_free(struct operand *o)
{
    mem_free(o->host);
    device_free(gpu, o->dev);
}

static void check(const char *what, const void *dev, enum dtype t,
                  const double *want, size_t n, double tol)
{
    static float got[M * N];
    static char back[M * N * 4];
    device_copy(gpu, back, dev, n * dtype_bytes(t));
    vector_cast(got, DTYPE_F32, back, t, n);
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(got[i] - want[i]) <= tol * (fabs(want[i]) + 3)))
            print_message("%s: element %zu is %g, not %g\n", what, i,
                          (double)got[i], want[i]);
        assert_true(fabs(got[i] - want[i]) <= tol * (fabs(want[i]) + 3));
    }
}

static double gelu_of(double x, double *slope)
{
    double u = 0.7978845608028654 * (x + 0.044715 * x * x * x), t = tanh(u);
    *slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 *
                                 (1 + 3 * 0.044715 * x * x);
    return 0.5 * x * (1 + t);
}

static void product_of(enum dtype t, bool tf32, bool ta, bool tb,
                       enum epilogue epilogue, bool add)
{
    struct operand a = operand(t, M * K, 1), b = operand(t, K * N, 2);
    struct operand bias = operand(t, N, 3), pre = operand(t, M * N, 4);
    bool grad = epilogue == EPILOGUE_BIAS_GRAD;
    enum dtype out_type = grad ? DTYPE_F32 : t;
    struct operand out = operand(out_type, M * N, 5);
    struct operand db = operand(DTYPE_F32, N, 6);
    float *partial = device_alloc(gpu, cuda_partial(N), sizeof *partial);
    static double want[M * N], sums[N], kept[M * N];
    for (int j = 0; j < N; j++) {
        sums[j] = add ? db.host[j] : 0;
        for (int k = 0; k < K; k++)
            sums[j] += b.host[tb ? j * K + k : k * N + j];
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = add ? out.host[i * N + j] : 0, slope;
            for (int k = 0; k < K; k++)
                sum += (double)a.host[ta ? k * M + i : i * K + k] *
                       b.host[tb ? j * K + k : k * N + j];
            if (epilogue == EPILOGUE_BIAS || epilogue == EPILOGUE_GELU)
                sum += bias.host[j];
            kept[i * N + j] = sum;
            if (epilogue == EPILOGUE_GELU)
                sum = gelu_of(sum, &slope);
            if (epilogue == EPILOGUE_DGELU) {
                gelu_of(pre.host[i * N + j], &slope);
                sum *= slope;
            }
            want[i * N + j] = sum;
        }
    struct cuda_product *p = NULL;
    assert_int_equal(cuda_product_open(&p, gpu, t, tf32, partial), 0);
    struct product_job j = {.m = M,
                            .n = N,
                            .k = K,
                            .ta = ta,
                            .tb = tb,
                            .a = a.dev,
                            .b = b.dev,
                            .out = out.dev,
                            .out_fp32 = grad,
                            .add = add,
                            .epilogue = epilogue,
                            .bias = bias.dev,
                            .pre = pre.dev,
                            .bias_grad = db.dev};
    cuda_product_run(p, &j);
    double tol = tf32 || t == DTYPE_BF16 ? 1e-2 : t == DTYPE_F16 ? 2e-3 : 1e-5;
    check("out", out.dev, out_type, want, M * N, tol);
    if (epilogue == EPILOGUE_GELU)
        check("pre", pre.dev, t, kept, M * N, tol);
    if (grad)
        check("bias gradient", db.dev, DTYPE_F32, sums, N, tol);
    cuda_product_close(&p);
    struct operand *all[] = {&a, &b, &bias, &pre, &out, &db};
    for (int i = 0; i < 6; i++)
        operand_free(all[i]);
    device_free(gpu, partial);
}

static void products_equal_sums_in_double(void **state)
{
    (void)state;
    static const enum dtype formats[] = {DTYPE_F32, DTYPE_F32, DTYPE_F16,
                                         DTYPE_BF16};
    for (int f = 0; f < 4; f++) {
        enum dtype t = formats[f];
        bool tf32 = f == 1;
        if ((t == DTYPE_BF16 || tf32) && cuda_capability(gpu) < 80)
            continue;
        product_of(t, tf32, false, false, EPILOGUE_BIAS, false);
        product_of(t, tf32, false, false, EPILOGUE_GELU, false);
        product_of(t, tf32, false, true, EPILOGUE_NONE, false);
        product_of(t, tf32, false, true, EPILOGUE_DGELU, false);
        product_of(t, tf32, true, false, EPILOGUE_BIAS_GRAD, false);
        product_of(t, tf32, true, false, EPILOGUE_BIAS_GRAD, true);
    }
}

// A bias gradient that overwrites has the same bits as one that is added to
// zeros. So a step with one micro-batch gives the same as the first of several.
static void adding_to_zeros_equals_overwriting(void **state)
{
    (void)state;
    static float sums[2][N];
    struct operand a = operand(DTYPE_F32, M * K, 1);
    struct operand b = operand(DTYPE_F32, K * N, 2);
    float *partial = device_alloc(gpu, cuda_partial(N), sizeof *partial);
    struct cuda_product *p = NULL;
    assert_int_equal(cuda_product_open(&p, gpu, DTYPE_F32, false, partial), 0);
    for (int add = 0; add < 2; add++) {
        float *out = device_alloc(gpu, M * N, sizeof *out);
        float *sum = device_alloc(gpu, N, sizeof *sum);
        assert_true(partial && out && sum);
        struct product_job j = {.m = M,
                                .n = N,
                                .k = K,
                                .ta = true,
                                .a = a.dev,
                                .b = b.dev,
                                .out = out,
                                .out_fp32 = true,
                                .add = add,
                                .epilogue = EPILOGUE_BIAS_GRAD,
                                .bias_grad = sum};
        cuda_product_run(p, &j);
        device_copy(gpu, sums[add], sum, sizeof sums[add]);
        device_free(gpu, out);
        device_free(gpu, sum);
    }
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    cuda_product_close(&p);
    device_free(gpu, partial);
    operand_free(&a);
    operand_free(&b);
}

// Half of the products add up to a number that needs one bit more than the
// format has. The other half add up to its negative plus one. The result is 1
// only if the sums are kept in fp32.
static void sums_are_kept_in_fp32(void **state)
{
    (void)state;
    for (enum dtype t = DTYPE_F16; t <= DTYPE_BF16; t++) {
        if (t == DTYPE_BF16 && cuda_capability(gpu) < 80)
            continue;
        float large = t == DTYPE_F16 ? 1024 : 128;
        float terms[] = {large + 1, large, -large, -large}, one = 1;
        uint16_t a[M * K], b[K * N] = {0};
        double want[M * N];
        for (int i = 0; i < M * K; i++)
            vector_cast(&a[i], t, &one, DTYPE_F32, 1);
        for (int j = 0; j < 4 * N; j++)
            vector_cast(&b[j / N * (K / 4) * N + j % N], t, &terms[j / N],
                        DTYPE_F32, 1);
        for (int i = 0; i < M * N; i++)
            want[i] = 1;
        struct operand da = operand(t, M * K, 1), db = operand(t, K * N, 2);
        struct operand out = operand(t, M * N, 3);
        device_copy(gpu, da.dev, a, sizeof a);
        device_copy(gpu, db.dev, b, sizeof b);
        struct cuda_product *p = NULL;
        assert_int_equal(cuda_product_open(&p, gpu, t, false, NULL), 0);
        struct product_job j = {
            .m = M, .n = N, .k = K, .a = da.dev, .b = db.dev, .out = out.dev};
        cuda_product_run(p, &j);
        check("out", out.dev, t, want, M * N, 0);
        cuda_product_close(&p);
        struct operand *all[] = {&da, &db, &out};
        for (int i = 0; i < 3; i++)
            operand_free(all[i]);
    }
}

// In the next layer the vectors of an epilogue begin 16 bytes later. The
// algorithm that was chosen for the shape must work with this alignment, too.
static void one_algorithm_serves_all_layers(void **state)
{
    (void)state;
    static const enum epilogue epilogues[] = {EPILOGUE_BIAS, EPILOGUE_GELU,
                                              EPILOGUE_DGELU,
                                              EPILOGUE_BIAS_GRAD};
    static char outs[2][M * N * 4];
    enum { STEP = 16 };
    for (int e = 0; e < 4; e++) {
        bool grad = epilogues[e] == EPILOGUE_BIAS_GRAD;
        struct operand a = operand(DTYPE_F16, M * K, 1);
        struct operand b = operand(DTYPE_F16, K * N, 2);
        char *vector = device_alloc(gpu, N * 4 + STEP, 1);
        char *pre[2] = {device_alloc(gpu, M * N, 2),
                        device_alloc(gpu, M * N * 2 + STEP, 1)};
        char *out = device_alloc(gpu, sizeof outs[0], 1);
        float *partial = device_alloc(gpu, cuda_partial(N), sizeof *partial);
        assert_true(vector && pre[0] && pre[1] && out && partial);
        struct cuda_product *p = NULL;
        assert_int_equal(cuda_product_open(&p, gpu, DTYPE_F16, false, partial),
                         0);
        for (int layer = 0; layer < 2; layer++) {
            char *v = vector + layer * STEP;
            struct product_job j = {.m = M,
                                    .n = N,
                                    .k = K,
                                    .a = a.dev,
                                    .b = b.dev,
                                    .out = out,
                                    .out_fp32 = grad,
                                    .epilogue = epilogues[e],
                                    .bias = v,
                                    .pre = pre[layer] + layer * STEP,
                                    .bias_grad = (float *)v};
            cuda_product_run(p, &j);
            device_copy(gpu, outs[layer], out, M * N * (grad ? 4 : 2));
        }
        assert_memory_equal(outs[0], outs[1], sizeof outs[0]);
        cuda_product_close(&p);
        device_free(gpu, partial);
        device_free(gpu, out);
        device_free(gpu, pre[0]);
        device_free(gpu, pre[1]);
        device_free(gpu, vector);
        operand_free(&a);
        operand_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest host[] = {cmocka_unit_test(cublaslt_is_found)};
    int failed = cmocka_run_group_tests(host, NULL, NULL);
    if (failed)
        return failed;
    if (device_open(&gpu, "cuda")) {
        print_message("skipped: %s\n", fail_message());
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_sums_in_double),
        cmocka_unit_test(adding_to_zeros_equals_overwriting),
        cmocka_unit_test(sums_are_kept_in_fp32),
        cmocka_unit_test(one_algorithm_serves_all_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
