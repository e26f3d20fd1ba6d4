// test_cuda_train.c - whole steps on the GPU beside the CPU's: 50 losses in
// every format, products with every epilogue, evaluation, logits, dropout, and
// accumulation. Skipped where there is no GPU.
//
// Losses of a nano GPT-2 that learns a short text by heart may differ by 1e-3
// in fp32, 1e-2 in TF32 and fp16 and 3e-2 in bf16 (nats a token, of about 4).

#include "base/base.h"
#include "base/rng.h"
#include "device/cuda.h"
#include "device/vector.h"
#include "model/cuda/kernels.h"
#include "model/cuda/lt.h"
#include "model/cuda/peak.h"
#include "model/cuda/product.h"
#include "model/cuda/state.h"
#include "model/model.h"
#include "optim/rule.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static struct device *gpu, *cpu;

// ---- rows by token: no GPU needed

static void tokens_are_sorted(void **state)
{
    (void)state;
    enum { N = 500, V = 40 };
    static int32_t x[N], order[N], start[N + 1], token[N], room[V + 1];
    for (int i = 0; i < N; i++)
        x[i] = (int32_t)(rng_u64(1, (uint64_t)i) % V *
                         (rng_u64(2, (uint64_t)i) % 2));
    int kinds = cuda_tokens_sort(order, start, token, room, x, N), seen = 0;
    assert_int_equal(start[kinds], N);
    for (int k = 0; k < kinds; k++)
        for (int i = start[k]; i < start[k + 1]; i++, seen++) {
            assert_int_equal(x[order[i]], token[k]);
            assert_true(i == start[k] || order[i] > order[i - 1]);
        }
    assert_int_equal(seen, N);
    for (int v = 0; v <= V; v++)
        assert_int_equal(room[v], 0);
}

// The library and its functions: they need no GPU to be found, but the runtime
// that this was built with. It is still there when it has been closed.
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

// ---- products

enum { M = 48, N = 72, K = 40 };

struct operand {
    float *host; // as the format holds it
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
    assert_int_equal(device_copy(gpu, o.dev, narrow, n * dtype_bytes(t)), 0);
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
    assert_int_equal(device_copy(gpu, back, dev, n * dtype_bytes(t)), 0);
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
    struct cuda_product_job j = {.m = M,
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

static void products(void **state)
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

// A bias gradient that replaces has the bits of one that is added to zeros: one
// micro-batch a step gives what the first of several does.
static void bias_gradients_add_alike(void **state)
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
        struct cuda_product_job j = {.m = M,
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
        assert_int_equal(device_copy(gpu, sums[add], sum, sizeof sums[add]), 0);
        device_free(gpu, out);
        device_free(gpu, sum);
    }
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    cuda_product_close(&p);
    device_free(gpu, partial);
    operand_free(&a);
    operand_free(&b);
}

// Half of the products add up to a number that has a bit more than the format,
// the other half to its negative, but for a one: only sums in fp32 keep it.
static void sums_are_wide(void **state)
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
        assert_int_equal(device_copy(gpu, da.dev, a, sizeof a), 0);
        assert_int_equal(device_copy(gpu, db.dev, b, sizeof b), 0);
        struct cuda_product *p = NULL;
        assert_int_equal(cuda_product_open(&p, gpu, t, false, NULL), 0);
        struct cuda_product_job j = {
            .m = M, .n = N, .k = K, .a = da.dev, .b = db.dev, .out = out.dev};
        cuda_product_run(p, &j);
        check("out", out.dev, t, want, M * N, 0);
        cuda_product_close(&p);
        struct operand *all[] = {&da, &db, &out};
        for (int i = 0; i < 3; i++)
            operand_free(all[i]);
    }
}

// The vectors of an epilogue lie 16 bytes further in the next layer: the
// shape's algorithm serves them, too.
static void layers_are_served_alike(void **state)
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
            struct cuda_product_job j = {.m = M,
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
            assert_int_equal(device_copy(gpu, outs[layer], out,
                                         M * N * (grad ? 4 : 2)),
                             0);
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
        assert_int_equal(rule_open(&rules[i], devices[i], c, n), 0);
    }
    for (int step = 1; step <= 4; step++) {
        for (size_t k = 0; k < n; k++)
            start[k] = (float)rng_normal((uint64_t)step, k);
        if (step == 3) // one overflow: nothing moves
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
        assert_int_equal(device_copy(gpu, back, p[1], n * sizeof *back), 0);
        assert_int_equal(float_bits(norm[1]), float_bits(norm[0]));
        assert_memory_equal(back, p[0], n * sizeof *back);
        assert_int_equal(copy[1].fresh, copy[0].fresh);
        assert_int_equal(device_copy(gpu, copy_back, copy[1].at,
                                     n * sizeof(uint16_t)),
                         0);
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

static void update(void **state)
{
    (void)state;
    struct optim_config c = {.beta1 = 0.9f,
                             .beta2 = 0.95f,
                             .eps = 1e-8f,
                             .weight_decay = 0.1f,
                             .ndecay = 3,
                             .decay = {{2, 5}, {1024, 1}, {2000, 70000}}};
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

// Fewer by the words of the command, where a GPU is emulated.
static int steps = STEPS, layers = 4, batch = BATCH;

static struct optim_config optim = {.kind = OPTIM_ADAMW,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .eps = 1e-8f};

static void side_open(struct side *s, struct device *d, enum dtype t, bool tf32,
                      float dropout)
{
    struct model_job job = {.precision = t,
                            .batch = batch,
                            .tokens = TOKENS,
                            .train = true,
                            .seed = 3,
                            .dev = d,
                            .tf32 = tf32};
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
    assert_int_equal(device_copy(d, s->params, init, n * sizeof *init), 0);
    mem_free(init);
    assert_int_equal(model_open(&s->model, &job), 0);
    assert_int_equal(rule_open(&s->rule, d, &optim, n), 0);
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
    for (int i = 0; i < BATCH * TOKENS; i++) { // a walk that can be learnt
        int at = step % 4 * 7 + i;
        x[i] = (int32_t)(at * at % VOCAB);
        y[i] = (int32_t)((at + 1) * (at + 1) % VOCAB);
    }
}

// What a kernel's launch would fail on is told beforehand.
static void too_large_is_refused(void **state)
{
    (void)state;
    struct model *m = NULL;
    struct model_job job = {.batch = CUDA_MAX_HEADS / 4 + 1,
                            .tokens = 1,
                            .dev = gpu};
    assert_int_equal(model_preset("nano", &job.config), 0);
    job.config.vocab = VOCAB;
    job.params = device_alloc(gpu, model_nparams(&job.config), sizeof(float));
    assert_non_null(job.params);
    assert_int_equal(model_open(&m, &job), -1);
    assert_non_null(strstr(fail_message(), "heads a step"));
    device_free(gpu, job.params);
}

// Two micro-batches a step, so that gradients are added to.
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
    side_open(&a, cpu, t, false, dropout);
    side_open(&b, gpu, t, tf32, dropout);
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

static void fifty_steps(void **state)
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
        side_open(&s, gpu, DTYPE_F16, false, 0.1f);
        for (int step = 0; step < steps && step < 10; step++)
            loss[run][step] = one_step(&s, step, 1024);
        side_close(&s);
    }
    assert_memory_equal(loss[0], loss[1], sizeof loss[0]);
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

// Words: the name of a test; or steps, layers and sequences.
int main(int argc, char **argv)
{
    if (argc == 2)
        cmocka_set_test_filter(argv[1]);
    if (argc > 3) {
        steps = atoi(argv[1]);
        layers = atoi(argv[2]);
        batch = atoi(argv[3]);
    }
    const struct CMUnitTest host[] = {cmocka_unit_test(data_sheets_are_found),
                                      cmocka_unit_test(tokens_are_sorted),
                                      cmocka_unit_test(cublaslt_is_found)};
    int failed = cmocka_run_group_tests(host, NULL, NULL);
    if (failed)
        return failed;
    if (device_open(&gpu, "cuda") || device_open(&cpu, "cpu")) {
        print_message("skipped: %s\n", fail_message());
        return TEST_SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(bias_gradients_add_alike),
        cmocka_unit_test(sums_are_wide),
        cmocka_unit_test(layers_are_served_alike),
        cmocka_unit_test(a_peak_is_measured),
        cmocka_unit_test(update),
        cmocka_unit_test(too_large_is_refused),
        cmocka_unit_test(fifty_steps),
        cmocka_unit_test(reruns_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
