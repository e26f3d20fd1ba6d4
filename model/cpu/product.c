// product.c - matrix products by oneDNN. On 64-bit ARM those of fp32 are
// OpenBLAS's, since oneDNN has only reference code there (a product of 96 x 96
// x 96 takes 6.2 times the instructions: docs/machines.md).
//
// Creating a matmul primitive costs up to a millisecond of code generation. So
// the first step creates one for each shape, and every later step uses it
// again.

#include "model/cpu/product.h"

#include "base/base.h"
#include "model/cpu/onednn.h"

#if defined(LOCKSTEP_OPENBLAS)
#include <cblas.h>
#endif
#include <omp.h>
#include <stdlib.h>
#include <string.h>

// A primitive with its arguments, and the first job that it ran. Later jobs of
// the same shape have other pointers.
struct cached {
    struct product_job shape;
    int threads; // the size of the team it was made for
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ONEDNN_ARGS];
    int nargs;
    struct cached *next;
};

struct product {
    const struct kernels *k;
    bool casts_up;
    struct product_scratch scratch;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct cached *made;
};

bool product_casts_up(enum dtype format)
{
    if (format == DTYPE_BF16) {
        unsigned has = (unsigned)dnnl_get_effective_cpu_isa();
        unsigned need = dnnl_cpu_isa_avx512_core_bf16;
        return (has & need) != need;
    }
    return format == DTYPE_F16;
}

// The library's own threads, if it has some, stay out of the way. Call it once,
// before the first product.
static void sgemm_one_thread(void)
{
#if defined(LOCKSTEP_OPENBLAS)
    openblas_set_num_threads(1);
#endif
}

int product_open(struct product **out, const struct kernels *k,
                 const struct product_scratch *scratch)
{
    struct product *p = mem_alloc(1, sizeof *p);
    if (!p)
        return -1;
    mem_keep(); // dnnl_sgemm allocates its packing buffers in every call
    sgemm_one_thread();
    *p = (struct product){.k = k,
                          .casts_up = product_casts_up(k->format),
                          .scratch = *scratch};
    if (dnnl_engine_create(&p->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&p->stream, p->engine, dnnl_stream_in_order) !=
            dnnl_success) {
        product_close(&p);
        return fail("model: oneDNN gives no CPU engine");
    }
    *out = p;
    return 0;
}

void product_close(struct product **pp)
{
    struct product *p = *pp;
    if (!p)
        return;
    while (p->made) {
        struct cached *c = p->made;
        p->made = c->next;
        for (int i = 0; i < c->nargs; i++)
            dnnl_memory_destroy(c->args[i].memory);
        dnnl_primitive_destroy(c->primitive);
        free(c);
    }
    if (p->stream)
        dnnl_stream_destroy(p->stream);
    if (p->engine)
        dnnl_engine_destroy(p->engine);
    mem_free(p);
    *pp = NULL;
}

// ---- fp32

// out (m, n) = left (m, k) right (k, n), or out += .. with `add`. All are
// row-major. With `ta`, left is stored (k, m). With `tb`, right is stored
// (n, k). lda, ldb and ldc are the distances between stored rows. The calling
// thread computes it alone, within an OpenMP region of the caller.
static void sgemm(bool ta, bool tb, int m, int n, int k, const float *left,
                  int lda, const float *right, int ldb, bool add, float *out,
                  int ldc)
{
#if defined(LOCKSTEP_OPENBLAS)
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                tb ? CblasTrans : CblasNoTrans, m, n, k, 1, left, lda, right,
                ldb, add ? 1 : 0, out, ldc);
#else
    DNNL(dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, left, lda,
                    right, ldb, add ? 1 : 0, out, ldc));
#endif
}

// Where a thread's share of n begins: at a whole number of units, or at n.
static int share_start(int n, int unit, int thread)
{
    long units = (n + unit - 1) / unit;
    long at = units * thread / omp_get_num_threads() * unit;
    return at < n ? (int)at : n;
}

// Each thread multiplies its own rows, or its own columns if there are more of
// them. That is faster than the library's own threads, and the next pass finds
// a thread's rows in the cache of its core.
static void run_sgemm(const struct product_job *j, const float *a, int lda,
                      const float *b, float *out, bool add)
{
    enum { ROWS = 8, COLUMNS = 16 };
    int ldb = j->tb ? j->k : j->n;
    bool by_rows = j->m >= j->n;
#pragma omp parallel
    {
        int t = omp_get_thread_num(), m = j->m, n = j->n, row = 0, column = 0;
        if (by_rows) {
            row = share_start(j->m, ROWS, t);
            m = share_start(j->m, ROWS, t + 1) - row;
        } else {
            column = share_start(j->n, COLUMNS, t);
            n = share_start(j->n, COLUMNS, t + 1) - column;
        }
        const float *left = a + (size_t)row * (j->ta ? 1 : lda);
        const float *right = b + (size_t)column * (j->tb ? ldb : 1);
        if (m > 0 && n > 0)
            sgemm(j->ta, j->tb, m, n, j->k, left, lda, right, ldb, add,
                  out + (size_t)row * j->n + column, j->n);
    }
}

// out = a b with a stored (k, m): transposes one piece of k after the other.
static void run_transposed(const struct product *p, const struct product_job *j)
{
    const float *a = j->a, *b = j->b;
    float *transposed = p->scratch.transposed;
    for (int at = 0; at < j->k; at += PRODUCT_DEPTH) {
        int left = j->k - at;
        struct product_job piece = *j;
        piece.k = left < PRODUCT_DEPTH ? left : PRODUCT_DEPTH;
        piece.ta = false;
        p->k->transpose(transposed, PRODUCT_APART, a + (size_t)at * j->m,
                        piece.k, j->m);
        run_sgemm(&piece, transposed, PRODUCT_APART, b + (size_t)at * j->n,
                  j->out, j->add || at > 0);
    }
}

// out = a b, where a and b are in fp32. The bias is written to out first, and
// the product is added to it. So the bias needs no pass after the product.
static void run_biased(const struct product *p, const struct product_job *j,
                       const float *a, const float *b, float *out)
{
    if (j->bias)
        p->k->fill_rows(out, j->bias, (size_t)j->m, j->n);
    run_sgemm(j, a, j->ta ? j->m : j->k, b, out, j->add || j->bias);
}

static void run_fp32(const struct product *p, const struct product_job *j)
{
    bool transposes =
        j->m <= p->scratch.transposed_rows && j->k >= PRODUCT_DEPTH;
    if (j->ta && !j->tb && !j->bias && transposes)
        run_transposed(p, j);
    else
        run_biased(p, j, j->a, j->b, j->out);
}

static void run_cast_up(const struct product *p, const struct product_job *j)
{
    size_t m = (size_t)j->m, n = (size_t)j->n, k = (size_t)j->k;
    const struct product_scratch *s = &p->scratch;
    float *out = j->out_fp32 ? j->out : s->wide_out;
    p->k->cast_up(s->wide_a, j->a, m * k);
    p->k->cast_up(s->wide_b, j->b, k * n);
    run_biased(p, j, s->wide_a, s->wide_b, out);
    if (!j->out_fp32)
        p->k->cast_down(j->out, out, m * n);
}

// ---- bf16

// For odd k: oneDNN 2.6.3's AMX kernels shorten a tile to an odd number of
// bf16, which the processor refuses (SIGILL, with m 33, k 63, n 21 and two
// threads).
static bool is_no_amx(const char *kernel)
{
    return !strstr(kernel, "amx");
}

static void make_primitive(struct product *p, struct cached *c)
{
    const struct product_job *j = &c->shape;
    const struct onednn_matmul matmul = {
        .a = {1, j->m, j->k, j->ta, dnnl_bf16, false},
        .b = {1, j->k, j->n, j->tb, dnnl_bf16, false},
        .out = {1, j->m, j->n, false, j->out_fp32 ? dnnl_f32 : dnnl_bf16,
                false},
        .bias = j->bias,
        .bias_type = dnnl_bf16,
        .add = j->add,
        .takes = j->k % 2 ? is_no_amx : NULL,
        .memory = DNNL_MEMORY_NONE,
    };
    c->nargs = onednn_open(&matmul, p->engine, &c->primitive, c->args);
    CHECK(c->nargs > 0);
}

static bool same_shape(const struct product_job *a, const struct product_job *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->ta == b->ta &&
           a->tb == b->tb && !a->bias == !b->bias &&
           a->out_fp32 == b->out_fp32 && a->add == b->add;
}

static struct cached *find_primitive(struct product *p,
                                     const struct product_job *j)
{
    int threads = omp_get_max_threads();
    for (struct cached *c = p->made; c; c = c->next)
        if (c->threads == threads && same_shape(&c->shape, j))
            return c;
    struct cached *c = calloc(1, sizeof *c);
    CHECK(c);
    c->shape = *j;
    c->threads = threads;
    make_primitive(p, c);
    c->next = p->made;
    p->made = c;
    return c;
}

static void run_bf16(struct product *p, const struct product_job *j)
{
    struct cached *c = find_primitive(p, j);
    const void *at[ONEDNN_ARGS] = {j->a, j->b, j->out, j->bias};
    for (int i = 0; i < c->nargs; i++)
        DNNL(dnnl_memory_set_data_handle(c->args[i].memory, (void *)at[i]));
    DNNL(dnnl_primitive_execute(c->primitive, p->stream, c->nargs, c->args));
    DNNL(dnnl_stream_wait(p->stream));
}

void product_run(struct product *p, const struct product_job *j)
{
    if (p->k->format == DTYPE_F32)
        run_fp32(p, j);
    else if (p->casts_up)
        run_cast_up(p, j);
    else
        run_bf16(p, j);
}
