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
#include "base/library.h"
#include "base/median.h"
#include "model/cpu/onednn.h"
#include "model/cpu/product.h"

#include <dlfcn.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DNNL(call) CHECK((call) == dnnl_success)

enum { TRIES = 3, ARGS = ONEDNN_ARGS - 1, MAX_LOGITS = 16 << 20 };

enum { ONE = 0x3f80 }; // 1 in bf16; written twice, about 1 in fp32

// ---- OpenBLAS, loaded by name: Lockstep builds and runs without it

struct openblas {
    void *library;
    // cblas_sgemm(): order, factors transposed or not, m, n, k, alpha, a and
    // its leading dimension, b, beta, out
    void (*sgemm)(int, int, int, int, int, int, float, const float *, int,
                  const float *, int, float, float *, int);
    const char *core; // the processor whose kernels it uses
};

// Constants of cblas.h. OPENMP is what openblas_get_parallel() returns if
// OpenBLAS was built with OpenMP.
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112, OPENMP = 2 };

static const char openblas_name[] = "libopenblas.so.0";

// oneDNN's names of instruction sets are those of x86.
#if defined(__x86_64__)
static void choose_kernels(void)
{
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    unsigned wide = dnnl_cpu_isa_avx512_core, narrow = dnnl_cpu_isa_avx2;
    if ((isa & wide) == wide)
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    else if ((isa & narrow) == narrow)
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
}
#else
static void choose_kernels(void)
{
}
#endif

static void openblas_close(struct openblas *b)
{
    if (b->library)
        dlclose(b->library);
    *b = (struct openblas){0};
}

// Loads the library for this many threads. Returns 0, or -1 after fail() if
// there is none. The environment variable OPENBLAS_CORETYPE can choose the
// kernels. Without it, the kernels are those of the instruction set that oneDNN
// uses, because OpenBLAS 0.3.21 takes the kernels of a Pentium 4 on a processor
// that it does not know.
static int openblas_open(struct openblas *b, int threads)
{
    *b = (struct openblas){0};
    choose_kernels(); // before dlopen(): OpenBLAS reads the variable there
    b->library = dlopen(openblas_name, RTLD_NOW | RTLD_LOCAL);
    if (!b->library)
        return fail("%s; try: apt-get install libopenblas0-openmp", dlerror());
    void (*set_threads)(int);
    int (*parallel)(void);
    char *(*core)(void);
    library_find(b->library, "openblas_get_parallel", &parallel);
    if (library_find(b->library, "cblas_sgemm", &b->sgemm) ||
        library_find(b->library, "openblas_set_num_threads", &set_threads) ||
        library_find(b->library, "openblas_get_corename", &core)) {
        openblas_close(b);
        return fail("%s: has no cblas_sgemm; try: apt-get install "
                    "libopenblas0-openmp",
                    openblas_name);
    }
    // OpenBLAS's own threads, which are not OpenMP's, would spin after each
    // product and slow down our threads.
    if (threads > 1 && parallel && parallel() != OPENMP) {
        openblas_close(b);
        return fail("%s: not its OpenMP build; try: apt-get install "
                    "libopenblas0-openmp",
                    openblas_name);
    }
    set_threads(threads);
    b->core = core();
    return 0;
}

// out (m, n) = left (m, k) right (k, n), row-major and contiguous. With `ta`,
// left is stored (k, m). With `tb`, right is stored (n, k).
static void openblas_run(const struct openblas *b, bool ta, bool tb, int m,
                         int n, int k, const float *left, const float *right,
                         float *out)
{
    b->sgemm(ROW_MAJOR, ta ? TRANSPOSED : PLAIN, tb ? TRANSPOSED : PLAIN, m, n,
             k, 1, left, ta ? m : k, right, tb ? k : n, 0, out, n);
}

// ---- the calls that are tried

static const struct call {
    const char *name;
    enum { SGEMM, OPENBLAS, MATMUL } by; // MATMUL: a primitive
    bool transposed;         // factor a, stored (k, m), is transposed before
    bool a_packed, b_packed; // before, as the primitive prefers
} calls[] = {
    {"sgemm", .by = SGEMM},
    {"sgemm, a transposed", .by = SGEMM, .transposed = true},
    {"OpenBLAS", .by = OPENBLAS},
    {"OpenBLAS, a transposed", .by = OPENBLAS, .transposed = true},
    {"matmul", .by = MATMUL},
    {"matmul, a transposed", .by = MATMUL, .transposed = true},
    {"matmul, b packed", .by = MATMUL, .b_packed = true},
    {"matmul, both packed", .by = MATMUL, .a_packed = true, .b_packed = true},
};

enum { CALLS = sizeof calls / sizeof *calls };

struct product {
    struct bound_product is;
    const struct call *call;
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
static void add_linear(struct bound *f, const char *y, const char *dx,
                       const char *dw, int ins, int outs)
{
    int rows = f->is.batch * f->is.tokens, L = f->is.config.layers;
    add(f, (struct bound_product){y, rows, outs, ins, L, 1, .share = 1});
    add(f, (struct bound_product){dx, rows, ins, outs, L, 1, .share = 1,
                                  .tb = true});
    add(f, (struct bound_product){dw, ins, outs, rows, L, 1, .share = 1,
                                  .ta = true, .out_fp32 = true});
}

// Q K' and P V, and the two gradients of each. S and dP have the same shapes, O
// and dQ have the same shapes, and so do dK and dV. A real backward computes S
// a second time; this lower bound does not.
static void add_attention(struct bound *f)
{
    const struct model_config *g = &f->is.config;
    int T = f->is.tokens, D = g->channels / g->heads, count = 2 * g->layers;
    int batch = f->is.batch * g->heads;
    double half = (T + 1) / (2.0 * T);
    add(f, (struct bound_product){"attention S, dP", T, T, D, count, batch,
                                  half, .tb = true});
    add(f, (struct bound_product){"attention O, dQ", T, D, T, count, batch,
                                  .share = half});
    add(f, (struct bound_product){"attention dK, dV", T, D, T, count, batch,
                                  half, .ta = true});
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
    add(f, (struct bound_product){"head", rows, V, C, count, 1, .share = 1,
                                  .tb = true, .out_fp32 = true});
    add(f, (struct bound_product){"head dX", rows, C, V, count, 1, .share = 1});
    add(f, (struct bound_product){"head dW", V, C, rows, count, 1, .share = 1,
                                  .ta = true, .out_fp32 = true});
}

static void list_products(struct bound *f)
{
    int C = f->is.config.channels;
    add_linear(f, "qkv", "qkv dX", "qkv dW", C, 3 * C);
    add_linear(f, "proj", "proj dX", "proj dW", C, C);
    add_linear(f, "fc", "fc dX", "fc dW", C, 4 * C);
    add_linear(f, "out", "out dX", "out dW", 4 * C, C);
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

static void run_sgemm(const struct bound *f, struct product *p)
{
    const struct bound_product *is = &p->is;
    size_t m = is->m, n = is->n, k = is->k;
    for (size_t i = 0; i < (size_t)is->batch; i++) {
        const float *a = p->a + i * m * k, *b = p->b + i * k * n;
        float *out = p->out + i * m * n;
        if (p->call->by == OPENBLAS)
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
static bool open_matmul(struct bound *f, struct product *p)
{
    const struct bound_product *is = &p->is;
    dnnl_data_type_t type = in_fp32(f) ? dnnl_f32 : dnnl_bf16;
    const struct call *call = p->call;
    const struct onednn_matmul matmul = {
        .a = {is->batch, is->m, is->k, is->ta, type, call->a_packed},
        .b = {is->batch, is->k, is->n, is->tb, type, call->b_packed},
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

static bool open_call(struct bound *f, struct product *p,
                      const struct call *call)
{
    size_t m = p->is.m, n = p->is.n, k = p->is.k, batch = p->is.batch;
    p->call = call;
    if (call->transposed && !p->is.ta)
        return false;
    p->is.ta &= !call->transposed;
    if (call->by == MATMUL)
        return open_matmul(f, p);
    if (!in_fp32(f) || (call->by == OPENBLAS && !f->openblas.library))
        return false;
    p->a = floats(batch * m * k);
    p->b = floats(batch * k * n);
    p->out = floats(batch * m * n);
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
}

static double time_call(struct bound *f, struct product *p)
{
    double start = workload_clock(f->is.threads);
    if (p->call->by != MATMUL) {
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
    const struct call *chosen = NULL;
    for (int c = 0; c < CALLS; c++) {
        struct product tried = {.is = p->is};
        if (open_call(f, &tried, &calls[c])) {
            double least = time_call(f, &tried); // the first also compiles
            for (int i = 0; i < TRIES; i++) {
                double s = time_call(f, &tried);
                least = s < least ? s : least;
            }
            if (!chosen || least < best) {
                best = least;
                chosen = &calls[c];
            }
        }
        close_call(&tried);
    }
    CHECK(chosen && open_call(f, p, chosen));
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

static double middle(const double *times, int rounds)
{
    double v[BOUND_ROUNDS];
    memcpy(v, times, sizeof v);
    return median(v, rounds);
}

static struct bound_line line(const struct product *p, int rounds)
{
    double cold = middle(p->cold, rounds), hot = middle(p->hot, rounds);
    double times = p->is.count * p->is.share;
    double flop = 2.0 * p->is.batch * p->is.m * p->is.n * p->is.k;
    return (struct bound_line){.is = p->is,
                               .call = p->call->name,
                               .seconds = cold * times,
                               .hot_seconds = hot * times,
                               .gflops = flop / cold * 1e-9,
                               .hot_gflops = flop / hot * 1e-9};
}

struct bound_times bound_read(const struct bound *f)
{
    struct bound_times t = {.update = middle(f->update, f->rounds),
                            .nlines = f->nproducts};
    for (int i = 0; i < f->nproducts; i++) {
        t.lines[i] = line(&f->products[i], f->rounds);
        t.products += t.lines[i].seconds;
        t.hot += t.lines[i].hot_seconds;
    }
    return t;
}
