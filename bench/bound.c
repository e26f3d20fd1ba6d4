// bound.c - times a training step's matrix products, each by the fastest call
// of two libraries.
//
//     bound = sum over products of count * share * median(time of one)
//             + 28 bytes per parameter / measured bandwidth of AdamW's streams
//
// The bench tries every product as dnnl_sgemm (fp32; one call per matrix of a
// batch), as OpenBLAS's sgemm if that is installed, and as a oneDNN matmul
// primitive. A primitive gets its factors in plain row-major layout, or packed
// in the layout that it prefers. The time to pack a factor, or to transpose it,
// is not counted. The call that is fastest at the start is kept.
//
// As in a training step, a product finds its factors in the cache or in memory,
// wherever the products before it left them. A second time is printed, too: the
// product is run again at once, with its factors in the cache. Attention's
// products are computed as whole squares, and only the part `share` of their
// time counts, because no library call computes a triangle.

#include "bench/bound.h"

#include "base/base.h"
#include "base/median.h"
#include "bench/openblas.h"
#include "model/cpu/onednn.h"
#include "model/cpu/product.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#define DNNL(call) CHECK((call) == dnnl_success)

enum { TRIES = 3, ARGS = ONEDNN_ARGS - 1, MAX_LOGITS = 16 << 20 };

enum { ONE = 0x3f80 }; // 1 in bf16; written twice, about 1 in fp32

enum call {
    SGEMM,
    SGEMM_TRANSPOSED,
    OPENBLAS,
    OPENBLAS_TRANSPOSED,
    MATMUL,
    MATMUL_TRANSPOSED,
    MATMUL_B,
    MATMUL_AB,
    CALLS
};

static const char *const call_name[CALLS] = {
    [SGEMM] = "sgemm",
    [SGEMM_TRANSPOSED] = "sgemm, a transposed",
    [OPENBLAS] = "OpenBLAS",
    [OPENBLAS_TRANSPOSED] = "OpenBLAS, a transposed",
    [MATMUL] = "matmul",
    [MATMUL_TRANSPOSED] = "matmul, a transposed",
    [MATMUL_B] = "matmul, b packed",
    [MATMUL_AB] = "matmul, both packed",
};

struct product {
    struct bound_product is;
    enum call call;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ONEDNN_ARGS];
    float *a, *b, *out; // for sgemm; primitives have their own
    double cold[BOUND_ROUNDS], hot[BOUND_ROUNDS];
};

struct bound {
    struct workload_case is;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct openblas openblas;
    int nproducts, rounds;
    struct product products[BOUND_PRODUCTS];
    size_t n;          // parameters
    float *streams[4]; // p, m, v, g
    double update[BOUND_ROUNDS];
};

// ---- the step's products

static void add(struct bound *f, struct bound_product p)
{
    CHECK(f->nproducts < BOUND_PRODUCTS);
    f->products[f->nproducts++].is = p;
}

// A linear layer of every block: forward, dX and dW.
static void add_linear(struct bound *f, const char *const names[3], int ins,
                       int outs)
{
    int rows = f->is.batch * f->is.tokens, L = f->is.config.layers;
    add(f, (struct bound_product){.name = names[0],
                                  .batch = 1,
                                  .m = rows,
                                  .n = outs,
                                  .k = ins,
                                  .count = L,
                                  .share = 1});
    add(f, (struct bound_product){.name = names[1],
                                  .batch = 1,
                                  .m = rows,
                                  .n = ins,
                                  .k = outs,
                                  .tb = true,
                                  .count = L,
                                  .share = 1});
    add(f, (struct bound_product){.name = names[2],
                                  .batch = 1,
                                  .m = ins,
                                  .n = outs,
                                  .k = rows,
                                  .ta = true,
                                  .out_fp32 = true,
                                  .count = L,
                                  .share = 1});
}

// Q K' and P V, and the two gradients of each. S and dP have the same shapes, O
// and dQ have the same shapes, and so do dK and dV. A real backward computes S
// a second time; this lower bound does not.
static void add_attention(struct bound *f)
{
    const struct model_config *g = &f->is.config;
    int T = f->is.tokens, D = g->channels / g->heads, L = g->layers;
    struct bound_product p = {.name = "attention S, dP",
                              .batch = f->is.batch * g->heads,
                              .m = T,
                              .n = T,
                              .k = D,
                              .tb = true,
                              .count = 2 * L,
                              .share = (T + 1) / (2.0 * T)};
    add(f, p);
    p.name = "attention O, dQ";
    p.n = D;
    p.k = T;
    p.tb = false;
    add(f, p);
    p.name = "attention dK, dV";
    p.ta = true;
    add(f, p);
}

// With a large vocabulary the head is computed in slices of rows, as model/
// does.
static void add_head(struct bound *f)
{
    int rows = f->is.batch * f->is.tokens, count = 1;
    int V = f->is.config.vocab, C = f->is.config.channels;
    while ((size_t)rows / count * V > MAX_LOGITS && rows % (2 * count) == 0)
        count *= 2;
    rows /= count;
    struct bound_product p = {.name = "head",
                              .batch = 1,
                              .m = rows,
                              .n = V,
                              .k = C,
                              .tb = true,
                              .out_fp32 = true,
                              .count = count,
                              .share = 1};
    add(f, p);
    p = (struct bound_product){.name = "head dX",
                               .batch = 1,
                               .m = rows,
                               .n = C,
                               .k = V,
                               .count = count,
                               .share = 1};
    add(f, p);
    p = (struct bound_product){.name = "head dW",
                               .batch = 1,
                               .m = V,
                               .n = C,
                               .k = rows,
                               .ta = true,
                               .out_fp32 = true,
                               .count = count,
                               .share = 1};
    add(f, p);
}

static void list_products(struct bound *f)
{
    static const char *const names[][3] = {
        {"qkv", "qkv dX", "qkv dW"},
        {"proj", "proj dX", "proj dW"},
        {"fc", "fc dX", "fc dW"},
        {"out", "out dX", "out dW"},
    };
    int C = f->is.config.channels;
    add_linear(f, names[0], C, 3 * C);
    add_linear(f, names[1], C, C);
    add_linear(f, names[2], C, 4 * C);
    add_linear(f, names[3], 4 * C, C);
    add_attention(f);
    add_head(f);
}

// ---- calls

static float *floats(size_t n)
{
    float *p = mem_alloc(n, sizeof *p);
    if (!p)
        die("%s", fail_message());
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(i % 7) - 3;
    return p;
}

// Whether factor a, which is stored (k, m), is transposed before the call.
static bool is_transposed(enum call call)
{
    return call == SGEMM_TRANSPOSED || call == OPENBLAS_TRANSPOSED ||
           call == MATMUL_TRANSPOSED;
}

static bool is_openblas(enum call call)
{
    return call == OPENBLAS || call == OPENBLAS_TRANSPOSED;
}

// Whether the call is a function, not a primitive.
static bool is_sgemm(enum call call)
{
    return call == SGEMM || call == SGEMM_TRANSPOSED || is_openblas(call);
}

static void open_sgemm(struct product *p)
{
    size_t m = p->is.m, n = p->is.n, k = p->is.k, batch = p->is.batch;
    p->a = floats(batch * m * k);
    p->b = floats(batch * k * n);
    p->out = floats(batch * m * n);
}

static void run_sgemm(const struct bound *f, struct product *p)
{
    const struct bound_product *is = &p->is;
    size_t m = is->m, n = is->n, k = is->k;
    for (size_t i = 0; i < (size_t)is->batch; i++) {
        const float *a = p->a + i * m * k, *b = p->b + i * k * n;
        float *out = p->out + i * m * n;
        if (is_openblas(p->call))
            openblas_run(&f->openblas, is->ta, is->tb, is->m, is->n, is->k, a,
                         b, out);
        else
            DNNL(dnnl_sgemm(is->ta ? 'T' : 'N', is->tb ? 'T' : 'N', is->m,
                            is->n, is->k, 1, a, is->ta ? is->m : is->k, b,
                            is->tb ? is->k : is->n, 0, out, is->n));
    }
}

// On a processor without bf16 instructions the library's bf16 is several times
// slower than its fp32. Then the lower bound is that of fp32.
static bool in_fp32(const struct bound *f)
{
    return f->is.precision == DTYPE_F32 || product_casts_up(f->is.precision);
}

// Opens a matmul primitive. Returns false if the library has none for it.
static bool open_matmul(struct bound *f, struct product *p, enum call call)
{
    const struct bound_product *is = &p->is;
    dnnl_data_type_t type = in_fp32(f) ? dnnl_f32 : dnnl_bf16;
    bool both = call == MATMUL_AB;
    const struct onednn_matmul matmul = {
        .a = {is->batch, is->m, is->k, is->ta, type, both},
        .b = {is->batch, is->k, is->n, is->tb, type, both || call == MATMUL_B},
        .out = {is->batch, is->m, is->n, false, is->out_fp32 ? dnnl_f32 : type,
                false},
        .memory = DNNL_MEMORY_ALLOCATE,
    };
    int n = onednn_open(&matmul, f->engine, &p->primitive, p->args);
    for (int i = 0; i < n; i++) {
        void *at;
        DNNL(dnnl_memory_get_data_handle(p->args[i].memory, &at));
        uint16_t *half = at;
        for (size_t k = 0; k < onednn_bytes(&p->args[i]) / sizeof *half; k++)
            half[k] = ONE;
    }
    return n > 0;
}

static bool open_call(struct bound *f, struct product *p, enum call call)
{
    p->call = call;
    if (is_transposed(call)) {
        if (!p->is.ta)
            return false;
        p->is.ta = false;
    }
    if (!is_sgemm(call))
        return open_matmul(f, p, call);
    if (!in_fp32(f) || (is_openblas(call) && !f->openblas.library))
        return false;
    open_sgemm(p);
    return true;
}

static void close_call(struct product *p)
{
    if (p->primitive) {
        for (int i = 0; i < ARGS; i++)
            dnnl_memory_destroy(p->args[i].memory);
        dnnl_primitive_destroy(p->primitive);
    }
    mem_free(p->a);
    mem_free(p->b);
    mem_free(p->out);
    p->primitive = NULL;
    p->a = p->b = p->out = NULL;
}

static double time_call(struct bound *f, struct product *p)
{
    double start = workload_clock(f->is.threads);
    if (is_sgemm(p->call)) {
        run_sgemm(f, p);
    } else {
        DNNL(dnnl_primitive_execute(p->primitive, f->stream, ARGS, p->args));
        DNNL(dnnl_stream_wait(f->stream));
    }
    return workload_clock(f->is.threads) - start;
}

static void choose_call(struct bound *f, struct product *p)
{
    double best = 0;
    int chosen = -1;
    for (enum call c = 0; c < CALLS; c++) {
        struct product tried = {.is = p->is};
        if (open_call(f, &tried, c)) {
            double least = time_call(f, &tried); // the first also compiles
            for (int i = 0; i < TRIES; i++) {
                double s = time_call(f, &tried);
                least = s < least ? s : least;
            }
            if (chosen < 0 || least < best) {
                best = least;
                chosen = (int)c;
            }
        }
        close_call(&tried);
    }
    CHECK(chosen >= 0 && open_call(f, p, (enum call)chosen));
    time_call(f, p);
}

// ---- AdamW's bytes

static double time_streams(struct bound *f)
{
    float *p = f->streams[0], *m = f->streams[1], *v = f->streams[2];
    const float *g = f->streams[3];
    double start = workload_clock(f->is.threads);
#pragma omp parallel for simd num_threads(f->is.threads) schedule(static)
    for (size_t i = 0; i < f->n; i++) {
        m[i] += g[i];
        v[i] += g[i];
        p[i] += g[i];
    }
    return workload_clock(f->is.threads) - start;
}

// ---- the lower bound

void bound_open(struct bound **out, const struct workload_case *c)
{
    struct bound *f = mem_alloc(1, sizeof *f);
    if (!f)
        die("%s", fail_message());
    f->is = *c;
    f->n = model_nparams(&c->config);
    omp_set_num_threads(c->threads);
    if (openblas_open(&f->openblas, c->threads))
        printf("# OpenBLAS is left out: %s\n", fail_message());
    else
        printf("# OpenBLAS with the kernels for %s\n", f->openblas.core);
    DNNL(dnnl_engine_create(&f->engine, dnnl_cpu, 0));
    DNNL(dnnl_stream_create(&f->stream, f->engine, dnnl_stream_in_order));
    list_products(f);
    for (int i = 0; i < f->nproducts; i++)
        choose_call(f, &f->products[i]);
    for (int i = 0; i < 4; i++)
        f->streams[i] = floats(f->n);
    *out = f;
}

void bound_close(struct bound **ff)
{
    struct bound *f = *ff;
    if (!f)
        return;
    for (int i = 0; i < f->nproducts; i++)
        close_call(&f->products[i]);
    for (int i = 0; i < 4; i++)
        mem_free(f->streams[i]);
    dnnl_stream_destroy(f->stream);
    dnnl_engine_destroy(f->engine);
    openblas_close(&f->openblas);
    mem_free(f);
    *ff = NULL;
}

void bound_round(struct bound *f)
{
    CHECK(f->rounds < BOUND_ROUNDS);
    for (int i = 0; i < f->nproducts; i++) {
        struct product *p = &f->products[i];
        p->cold[f->rounds] = time_call(f, p);
        p->hot[f->rounds] = time_call(f, p);
    }
    f->update[f->rounds++] = time_streams(f);
}

struct bound_line bound_line(const struct bound *f, int i)
{
    const struct product *p = &f->products[i];
    double v[BOUND_ROUNDS], times = p->is.count * p->is.share;
    double flop = 2.0 * p->is.batch * p->is.m * p->is.n * p->is.k;
    memcpy(v, p->cold, sizeof v);
    double cold = median(v, f->rounds);
    memcpy(v, p->hot, sizeof v);
    double hot = median(v, f->rounds);
    return (struct bound_line){.is = p->is,
                               .call = call_name[p->call],
                               .seconds = cold * times,
                               .hot_seconds = hot * times,
                               .gflops = flop / cold * 1e-9,
                               .hot_gflops = flop / hot * 1e-9};
}

int bound_nlines(const struct bound *f)
{
    return f->nproducts;
}

double bound_products(const struct bound *f)
{
    double sum = 0;
    for (int i = 0; i < f->nproducts; i++)
        sum += bound_line(f, i).seconds;
    return sum;
}

double bound_hot(const struct bound *f)
{
    double sum = 0;
    for (int i = 0; i < f->nproducts; i++)
        sum += bound_line(f, i).hot_seconds;
    return sum;
}

double bound_update(const struct bound *f)
{
    double v[BOUND_ROUNDS];
    memcpy(v, f->update, sizeof v);
    return median(v, f->rounds);
}
