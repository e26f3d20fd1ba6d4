// test_cuda_ops.c - compares every CUDA operation of the model with the CPU's,
// on the same random input. Skipped on a machine without a GPU.
//
// An element may differ by a factor times the sum of its size and the tensor's
// root mean square. The factor is 1e-4 in fp32, where only the order of sums
// and the exponential differ. It is 4e-3 in fp16 and 3e-2 in bf16, about four
// units in the last place: both sides round, and the GPU also rounds the
// factors of attention's products. TF32 has as many bits as fp16, and the same
// factor. Masks, and gradients that settle() rounds, must be equal to the bit.
// test_cuda_train.c tests the update.

#include "tests/both.h"

#include "device/cuda.h"
#include "model/cuda/kernels_cuda.h"

#include <omp.h>

static struct cuda_model now = {0}; // of the GPU's operations
static const struct kernels *const g = &kernels_cuda;

// ---- embedding

// Some tokens occur in many rows. A row has more channels than a thread block
// of the kernels has threads.
enum { B = 3, T = 21, C = 264, V = 11, ROWS = B * T };

static void make_tokens(struct both *x)
{
    int32_t *v = x->cpu;
    for (int r = 0; r < ROWS; r++) // some tokens often, some never
        v[r] = (int32_t)(rng_below(7, (uint64_t)r, V) *
                         rng_below(8, (uint64_t)r, V) / V);
    send(x);
}

// Sorts tokens in the order of model/cuda/model_cuda.c, but in a plain way.
static struct cuda_tokens sort_tokens(const int32_t *x, struct both *order,
                                      struct both *start, struct both *token)
{
    int32_t *o = order->cpu, *s = start->cpu, *t = token->cpu;
    int kinds = 0, n = 0;
    for (int v = 0; v < V; v++) {
        int before = n;
        for (int r = 0; r < ROWS; r++)
            if (x[r] == v)
                o[n++] = r;
        if (n == before)
            continue;
        t[kinds] = v;
        s[kinds++] = before;
    }
    s[kinds] = n;
    send(order);
    send(start);
    send(token);
    return (struct cuda_tokens){order->gpu, start->gpu, token->gpu, kinds};
}

static void embedding(void **state)
{
    (void)state;
    for (int f = 0; f < 2 * FORMATS; f++) {
        enum dtype t = formats[f / 2];
        const struct kernels *k = kernels_find(t);
        struct mask mask = mask_of(f % 2 ? 0.3 : 0);
        bool add = f % 2;
        struct both x = both_zeros(DTYPE_F32, ROWS); // 4 bytes each
        struct both order = both_zeros(DTYPE_F32, ROWS);
        struct both start = both_zeros(DTYPE_F32, V + 1);
        struct both token = both_zeros(DTYPE_F32, V);
        struct both wte = both_random(t, V * C, 1, 1);
        struct both wpe = both_random(t, T * C, 2, 1);
        struct both out = both_zeros(t, ROWS * C);
        struct both dout = both_random(t, ROWS * C, 3, 1);
        struct both dwte = both_random(DTYPE_F32, V * C, 4, 1);
        struct both dwpe = both_random(DTYPE_F32, T * C, 5, 1);
        make_tokens(&x);
        now.format = t;
        now.tokens = sort_tokens(x.cpu, &order, &start, &token);
        k->embed(out.cpu, wte.cpu, wpe.cpu, x.cpu, ROWS, T, C, &mask);
        g->embed(out.gpu, wte.gpu, wpe.gpu, x.gpu, ROWS, T, C, &mask);
        assert_close("embed", &out, tolerance(t));
        k->embed_backward(dwte.cpu, dwpe.cpu, dout.cpu, x.cpu,
                          (struct words){0, V}, ROWS, T, C, add, &mask);
        g->embed_backward(dwte.gpu, dwpe.gpu, dout.gpu, x.gpu,
                          (struct words){0, V}, ROWS, T, C, add, &mask);
        assert_close("dwte", &dwte, 1e-4);
        assert_close("dwpe", &dwpe, 1e-4);
        struct both *all[] = {&x,   &order, &start, &token, &wte,
                              &wpe, &out,   &dout,  &dwte,  &dwpe};
        for (int i = 0; i < 10; i++)
            both_free(all[i]);
    }
}

// ---- LayerNorm

static void norms(enum dtype t, size_t rows, int c, double rate, bool add)
{
    const struct kernels *k = kernels_find(t);
    struct mask mask = mask_of(rate);
    size_t n = rows * (size_t)c, threads = (size_t)omp_get_max_threads();
    struct both res = both_random(t, n, 1, 2), branch = both_random(t, n, 2, 1);
    struct both sum = both_zeros(t, n), out = both_zeros(t, n);
    struct both w = both_random(t, (size_t)c, 3, 1);
    struct both b = both_random(t, (size_t)c, 4, 1);
    struct both mean = both_zeros(DTYPE_F32, rows);
    struct both rstd = both_zeros(DTYPE_F32, rows);
    struct both dout = both_random(t, n, 5, 1), dres = both_random(t, n, 6, 1);
    struct both dw = both_random(DTYPE_F32, (size_t)c, 7, 1);
    struct both db = both_random(DTYPE_F32, (size_t)c, 8, 1);
    float *partial = mem_alloc(threads * 2 * partial_width(c), sizeof *partial);
    float *gpu_partial = device_alloc(gpu, cuda_partial(c), sizeof(float));
    assert_true(partial && gpu_partial);

    k->norm(sum.cpu, out.cpu, mean.cpu, rstd.cpu, res.cpu, branch.cpu, NULL,
            w.cpu, b.cpu, rows, c, &mask);
    now.format = t;
    g->norm(sum.gpu, out.gpu, mean.gpu, rstd.gpu, res.gpu, branch.gpu, NULL,
            w.gpu, b.gpu, rows, c, &mask);
    assert_close("norm sum", &sum, tolerance(t));
    assert_close("norm", &out, tolerance(t));
    assert_close("mean", &mean, tolerance(t));
    assert_close("rstd", &rstd, tolerance(t));
    send(&sum);
    send(&mean);
    send(&rstd);
    k->norm_backward(dres.cpu, add, out.cpu, dw.cpu, db.cpu, add, dout.cpu,
                     sum.cpu, mean.cpu, rstd.cpu, w.cpu, b.cpu, rows, c,
                     partial);
    g->norm_backward(dres.gpu, add, out.gpu, dw.gpu, db.gpu, add, dout.gpu,
                     sum.gpu, mean.gpu, rstd.gpu, w.gpu, b.gpu, rows, c,
                     gpu_partial);
    assert_close("norm again", &out, tolerance(t));
    assert_close("dres", &dres, tolerance(t));
    assert_close("dweight", &dw, 1e-3);
    assert_close("dbias", &db, 1e-3);
    struct both *all[] = {&res,  &branch, &sum,  &out,  &w,  &b,
                          &mean, &rstd,   &dout, &dres, &dw, &db};
    for (int i = 0; i < 12; i++)
        both_free(all[i]);
    mem_free(partial);
    device_free(gpu, gpu_partial);
}

static void layer_norm(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        norms(formats[f], 1, 8, 0, false);
        norms(formats[f], 63, 96, 0.3, true);
        norms(formats[f], 700, 768, 0, true);
        norms(formats[f], 5, 1600, 0.1, false);
        norms(formats[f], 1700, 120, 0, true);
        norms(formats[f], 40, 1000, 0, false);
        norms(formats[f], 17, 400, 0, true);
        norms(formats[f], 2, CUDA_MAX_CHANNELS, 0, false);
    }
}

// ---- GELU and bias

static void gelus(void **state)
{
    (void)state;
    enum { N = ROWS * C };
    for (int f = 0; f < FORMATS; f++) {
        enum dtype t = formats[f];
        const struct kernels *k = kernels_find(t);
        struct both in = both_random(t, N, 1, 3), out = both_zeros(t, N);
        struct both d = both_random(t, N, 2, 1), pre = both_zeros(t, N);
        struct both zero = both_zeros(t, C), bias = both_random(t, C, 3, 1);
        k->gelu(out.cpu, in.cpu, NULL, ROWS, C);
        k->gelu_backward(d.cpu, out.cpu, in.cpu, NULL, ROWS, C);
        cuda_gelu_backward(now.queue, t, d.gpu, in.gpu, N);
        assert_close("gelu backward", &d, tolerance(t));
        // a product's epilogue by hand: in + 0, then its GELU
        memcpy(pre.cpu, in.cpu, N * dtype_bytes(t));
        cuda_bias(now.queue, t, in.gpu, pre.gpu, zero.gpu, ROWS, C);
        memcpy(in.cpu, out.cpu, N * dtype_bytes(t));
        assert_same(&pre);
        assert_close("bias and gelu", &in, tolerance(t));
        for (int i = 0; i < N && t == DTYPE_F32; i++)
            ((float *)pre.cpu)[i] += ((float *)bias.cpu)[i % C];
        if (t == DTYPE_F32) {
            cuda_bias(now.queue, t, pre.gpu, NULL, bias.gpu, ROWS, C);
            assert_same(&pre);
        }
        struct both *all[] = {&in, &out, &d, &pre, &zero, &bias};
        for (int i = 0; i < 6; i++)
            both_free(all[i]);
    }
}

// ---- attention

static void attentions(enum dtype t, bool tf32, int b, int len, int heads,
                       int size, double rate)
{
    const struct kernels *k = kernels_find(t);
    int c = heads * size;
    size_t rows = (size_t)b * (size_t)len, n = rows * (size_t)c;
    size_t threads = (size_t)omp_get_max_threads();
    struct attention on_cpu = {b, len, c, heads, mask_of(rate), NULL, 0, 0};
    struct attention on_gpu = on_cpu;
    struct both qkv = both_random(t, 3 * n, 1, 1), out = both_zeros(t, n);
    struct both lse = both_zeros(DTYPE_F32, rows * (size_t)heads);
    struct both dout = both_random(t, n, 2, 1), dqkv = both_zeros(t, 3 * n);
    on_gpu.scratch = device_alloc(gpu, rows * (size_t)heads, sizeof(float));
    on_cpu.scratch =
        mem_alloc(threads * attention_scratch(len, c, heads), sizeof(float));
    assert_true(on_gpu.scratch && on_cpu.scratch);
    double tol = tf32 ? tolerance(DTYPE_F16) : tolerance(t);
    k->attention(out.cpu, lse.cpu, qkv.cpu, &on_cpu);
    now.format = t;
    now.tf32 = tf32;
    g->attention(out.gpu, lse.gpu, qkv.gpu, &on_gpu);
    assert_close("attention", &out, tol);
    assert_close("lse", &lse, tol);
    send(&out);
    send(&lse);
    k->attention_backward(dqkv.cpu, dout.cpu, out.cpu, lse.cpu, qkv.cpu,
                          &on_cpu);
    g->attention_backward(dqkv.gpu, dout.gpu, out.gpu, lse.gpu, qkv.gpu,
                          &on_gpu);
    assert_close("dqkv", &dqkv, 2 * tol);
    struct both *all[] = {&qkv, &out, &lse, &dout, &dqkv};
    for (int i = 0; i < 5; i++)
        both_free(all[i]);
    mem_free(on_cpu.scratch);
    device_free(gpu, on_gpu.scratch);
}

static void attention(void **state)
{
    (void)state;
    static const struct {
        int b, len, heads, size;
        double rate;
    } cases[] = {{1, 1, 1, 8, 0},     {2, 17, 3, 32, 0},   {1, 64, 2, 64, 0},
                 {2, 130, 2, 64, 0},  {1, 100, 2, 80, 0},  {1, 70, 2, 128, 0},
                 {1, 40, 4, 6, 0},    {2, 90, 2, 64, 0.3}, {1, 20, 8, 7, 0},
                 {1, 300, 1, 64, 0.1}};
    for (int f = 0; f <= FORMATS; f++) // the last: fp32, computed in TF32
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            enum dtype t = f < FORMATS ? formats[f] : DTYPE_F32;
            bool tf32 = f == FORMATS;
            if ((t == DTYPE_BF16 || tf32) && cuda_capability(gpu) < 80)
                continue;
            attentions(t, tf32, cases[i].b, cases[i].len, cases[i].heads,
                       cases[i].size, cases[i].rate);
        }
}

// ---- blocks of attention over divided sequences

struct division {
    int b, len, n, heads, size; // of len tokens, by n workers
    double rate;
};

// A worker's queries, and what it computes for them.
struct divided {
    struct division d;
    enum dtype t;
    struct zigzag own;
    int rank;
    struct attention on_cpu, on_gpu;
    struct both qkv, out, lse, dout, dq;
    struct both rounded; // out in the format
};

static void block(struct divided *v, bool backward, const struct both *kv,
                  const struct both *dkv, const struct attention_runs *r)
{
    const struct kernels *k = kernels_find(v->t);
    if (backward) {
        k->attention_block_backward(v->dq.cpu, dkv->cpu, v->dout.cpu,
                                    v->rounded.cpu, v->lse.cpu, v->qkv.cpu,
                                    kv->cpu, r, &v->on_cpu);
        g->attention_block_backward(v->dq.gpu, dkv->gpu, v->dout.gpu,
                                    v->rounded.gpu, v->lse.gpu, v->qkv.gpu,
                                    kv->gpu, r, &v->on_gpu);
        return;
    }
    k->attention_block(v->out.cpu, v->lse.cpu, v->qkv.cpu, kv->cpu, r,
                       &v->on_cpu);
    g->attention_block(v->out.gpu, v->lse.gpu, v->qkv.gpu, kv->gpu, r,
                       &v->on_gpu);
}

// All blocks of v's queries, its own keys first.
static void each_block(struct divided *v, double tol, bool backward)
{
    for (int s = 0; s < v->d.n; s++) {
        int from = (v->rank + s) % v->d.n;
        struct zigzag z = zigzag_of(v->d.len, v->d.n, from);
        size_t n = (size_t)(v->d.b * z.own * v->d.heads * v->d.size);
        struct both kv = both_random(v->t, 2 * n, 10 + (uint64_t)from, 1);
        struct both dkv = both_random(DTYPE_F32, 2 * n, 3, 0.1);
        for (int i = 0; i < ZIGZAG_PIECES * ZIGZAG_PIECES; i++) {
            int k = i % 2;
            const struct attention_runs r = {v->own.run[i / 2], z.run[k],
                                             v->own.own, z.own,
                                             s == 0 && (k == 0 || !z.run[0].n)};
            if (r.queries.n && r.keys.n && r.keys.first <= r.queries.first)
                block(v, backward, &kv, &dkv, &r);
        }
        assert_close("dkv of blocks", &dkv, 3 * tol);
        both_free(&kv);
        both_free(&dkv);
    }
}

// Masks are those of some heads of a slice.
static void worker_blocks(enum dtype t, bool tf32, struct division d, int rank)
{
    int c = d.heads * d.size;
    struct zigzag own = zigzag_of(d.len, d.n, rank);
    size_t rows = (size_t)(d.b * own.own), n = rows * (size_t)c;
    size_t threads = (size_t)omp_get_max_threads(), scores = rows * d.heads;
    struct mask mask = mask_of(d.rate);
    double tol = tf32 ? tolerance(DTYPE_F16) : tolerance(t);
    float *scratch = mem_alloc(threads * attention_scratch(d.len, c, d.heads),
                               sizeof *scratch);
    float *row_sum = device_alloc(gpu, scores, sizeof *row_sum);
    struct divided v = {
        .d = d,
        .t = t,
        .own = own,
        .rank = rank,
        .on_cpu = {d.b, d.len, c, d.heads, mask, scratch, 1, d.heads + 2},
        .on_gpu = {d.b, d.len, c, d.heads, mask, row_sum, 1, d.heads + 2},
        .qkv = both_random(t, 3 * n, 1, 1),
        .out = both_random(DTYPE_F32, n, 4, 1), // the first block replaces it
        .lse = both_random(DTYPE_F32, scores, 5, 1),
        .dout = both_random(t, n, 2, 1),
        .dq = both_random(DTYPE_F32, n, 6, 0.1),
        .rounded = both_zeros(t, n)};
    now.format = t;
    now.tf32 = tf32;
    each_block(&v, tol, false);
    assert_close("attention of blocks", &v.out, tol);
    assert_close("lse of blocks", &v.lse, tol);
    vector_cast(v.rounded.cpu, t, v.out.cpu, DTYPE_F32, n);
    send(&v.rounded);
    send(&v.lse);
    each_block(&v, tol, true);
    assert_close("dq of blocks", &v.dq, 3 * tol);
    struct both *all[] = {&v.qkv, &v.out, &v.lse, &v.dout, &v.dq, &v.rounded};
    for (int i = 0; i < 6; i++)
        both_free(all[i]);
    mem_free(scratch);
    device_free(gpu, row_sum);
}

static void attention_blocks(void **state)
{
    (void)state;
    static const struct division cases[] = {
        {1, 2, 2, 1, 8, 0},      {2, 17, 3, 1, 32, 0.3}, {1, 40, 2, 2, 6, 0.1},
        {1, 270, 1, 1, 64, 0.1}, {1, 90, 2, 1, 128, 0},  {1, 31, 2, 1, 7, 0}};
    for (int f = 0; f <= FORMATS; f++) // the last: fp32, computed in TF32
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            enum dtype t = f < FORMATS ? formats[f] : DTYPE_F32;
            bool tf32 = f == FORMATS;
            if ((t == DTYPE_BF16 || tf32) && cuda_capability(gpu) < 80)
                continue;
            for (int rank = 0; rank < cases[i].n; rank++)
                worker_blocks(t, tf32, cases[i], rank);
        }
}

// ---- the loss

static void assert_zeros(const char *dev, size_t bytes)
{
    char back[64 * sizeof(float)];
    device_copy(gpu, back, dev, bytes);
    for (size_t i = 0; i < bytes; i++)
        assert_true(back[i] == 0);
}

static void losses(enum dtype t, size_t rows, int symbols)
{
    const struct kernels *k = kernels_find(t);
    size_t n = (size_t)symbols, stride = (n + 63) / 64 * 64;
    size_t size = dtype_bytes(t);
    struct both logits = both_random(t, rows * n, 1, 5);
    struct both grads = both_zeros(t, rows * n);
    struct both loss = both_zeros(DTYPE_F32, rows), mean = loss;
    struct both y = both_zeros(DTYPE_F32, rows);
    struct both padded = both_random(t, rows * stride, 1, 6);
    float *wide = mem_alloc(rows * n, sizeof *wide);
    assert_non_null(wide);
    vector_cast(wide, DTYPE_F32, logits.cpu, t, rows * n);
    for (size_t r = 0; r < rows; r++) {
        ((int32_t *)y.cpu)[r] = (int32_t)rng_below(2, r, (uint64_t)symbols);
        device_copy(gpu, (char *)padded.gpu + r * stride * size,
                    (char *)logits.cpu + r * n * size, n * size);
    }
    send(&y);
    k->loss(loss.cpu, grads.cpu, wide, y.cpu, rows, symbols, 3);
    now.format = t;
    now.stride = stride;
    g->loss(loss.gpu, padded.gpu, padded.gpu, y.gpu, rows, symbols, 3);
    assert_close("loss", &loss, 1e-4);
    for (size_t r = 0; r < rows; r++)
        device_copy(gpu, (char *)grads.gpu + r * n * size,
                    (char *)padded.gpu + r * stride * size, n * size);
    assert_close("dlogits", &grads, tolerance(t));
    for (size_t r = 0; r < rows; r++)
        assert_zeros((char *)padded.gpu + (r * stride + n) * size,
                     (stride - n) * size);
    double sum = 0;
    for (size_t r = 0; r < rows; r++)
        sum += ((float *)loss.cpu)[r];
    mean = both_zeros(DTYPE_F32, 1);
    *(float *)mean.cpu = (float)(sum / (double)rows);
    g->mean(mean.gpu, loss.gpu, rows);
    assert_close("mean", &mean, 1e-4);
    struct both *all[] = {&logits, &padded, &grads, &loss, &mean, &y};
    for (int i = 0; i < 6; i++)
        both_free(all[i]);
    mem_free(wide);
}

static void loss(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        losses(formats[f], 5, 2);
        losses(formats[f], 130, 65);
        losses(formats[f], 3, 4099);
        losses(formats[f], 2, 50257);
    }
}

// ---- small passes

static void vectors(void **state)
{
    (void)state;
    enum { R = 1030 };
    for (int f = 0; f < FORMATS; f++) {
        enum dtype t = formats[f];
        const struct kernels *k = kernels_find(t);
        struct mask mask = mask_of(0.2);
        struct both in = both_random(t, R * C, 1, 1);
        struct both out = both_zeros(t, R * C);
        struct both sum = both_random(DTYPE_F32, C, 2, 1);
        struct both wide = both_random(DTYPE_F32, R * C, 3, 1);
        struct both grad = both_random(DTYPE_F32, R * C, 4, 1);
        size_t threads = (size_t)omp_get_max_threads();
        float *partial = device_alloc(gpu, cuda_partial(C), sizeof *partial);
        float *scratch = mem_alloc(threads * partial_width(C), sizeof *scratch);
        assert_true(partial && scratch);
        k->mask_rows(out.cpu, in.cpu, R, C, &mask);
        now.format = t;
        g->mask_rows(out.gpu, in.gpu, R, C, &mask);
        assert_same(&out);
        for (int add = 0; add < 2; add++) {
            k->sum_rows(sum.cpu, in.cpu, R, C, add, scratch);
            g->sum_rows(sum.gpu, in.gpu, R, C, add, partial);
            assert_close("sum of rows", &sum, 1e-4);
            k->settle(grad.cpu, wide.cpu, R * C, add);
            g->settle(grad.gpu, wide.gpu, R * C, add);
            assert_same(&grad);
        }
        struct both *all[] = {&in, &out, &sum, &wide, &grad};
        for (int i = 0; i < 5; i++)
            both_free(all[i]);
        device_free(gpu, partial);
        mem_free(scratch);
    }
}

// `test_cuda_ops TEST` runs only the tests of that name.
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (device_open(&gpu, "cuda")) {
        print_message("skipped: %s\n", fail_message());
        return TEST_SKIPPED;
    }
    now.dev = gpu;
    now.queue = device_handle(gpu, DEVICE_COMPUTE);
    cuda_begin(&now);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedding),
        cmocka_unit_test(layer_norm),
        cmocka_unit_test(gelus),
        cmocka_unit_test(attention),
        cmocka_unit_test(loss),
        cmocka_unit_test(vectors),
        cmocka_unit_test(attention_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
