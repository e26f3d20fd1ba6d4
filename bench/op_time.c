// op_time.c - a clock around every operation. The linker inserts it.
//
// `-Wl,--wrap=f` turns every call of f into a call of __wrap_f, which calls
// __real_f. So the model's code does not change: this file wraps product_run()
// and the kernels that forward.c and backward.c call.

#include "bench/op_time.h"

#include "base/base.h"
#include "bench/workload.h"
#include "model/cpu/product.h"
#include "model/kernels.h"

#include <string.h>

static struct {
    int threads; // 0: off
    struct op_time ops[OP_TIMES];
    int n;
    struct kernels timed[3]; // by enum dtype
    const struct kernels *k; // of the model that was opened last, unwrapped
} state;

static double begin(void)
{
    return state.threads ? workload_clock(state.threads) : 0;
}

static void end(const char *name, double start, double flop, double bytes)
{
    if (!state.threads)
        return;
    double s = workload_clock(state.threads) - start;
    int i = 0;
    while (i < state.n && strcmp(state.ops[i].name, name) != 0)
        i++;
    CHECK(i < OP_TIMES);
    struct op_time *o = &state.ops[i];
    if (i == state.n)
        *o = (struct op_time){.name = name, .inside = name[0] == '('},
        state.n++;
    o->seconds += s;
    o->flop += flop;
    o->bytes += bytes;
    o->calls++;
}

static double width(void)
{
    return (double)dtype_bytes(state.k->format);
}

void op_time_start(int threads)
{
    state.threads = threads;
    state.n = 0;
}

int op_time_read(struct op_time out[OP_TIMES])
{
    memcpy(out, state.ops, sizeof state.ops);
    return state.n;
}

// ---- products

extern __typeof__(product_run) __real_product_run, __wrap_product_run;

static const char *product_name(const struct product_job *j)
{
    if (j->ta)
        return "products dW";
    if (j->tb)
        return j->out_fp32 ? "products head" : "products dX";
    return "products forward, head dX";
}

void __wrap_product_run(struct product *p, const struct product_job *j)
{
    double start = begin();
    __real_product_run(p, j);
    end(product_name(j), start, 2.0 * j->m * j->n * j->k, 0);
}

// ---- kernels; only the bytes of large tensors count

static void embed(void *out, const void *wte, const void *wpe, const int32_t *x,
                  size_t rows, int T, int C, const struct mask *mask)
{
    double start = begin();
    state.k->embed(out, wte, wpe, x, rows, T, C, mask);
    end("embed", start, 0, 3 * width() * rows * C);
}

static void embed_backward(float *dwte, float *dwpe, const void *dout,
                           const int32_t *x, struct words here, size_t rows,
                           int T, int C, bool add, const struct mask *mask)
{
    double start = begin();
    state.k->embed_backward(dwte, dwpe, dout, x, here, rows, T, C, add, mask);
    end("embed backward", start, 0, (width() + 16) * rows * C);
}

static void norm(void *sum, void *out, float *mean, float *rstd,
                 const void *res, const void *branch, const void *branch_bias,
                 const void *weight, const void *bias, size_t rows, int C,
                 const struct mask *mask)
{
    double start = begin();
    state.k->norm(sum, out, mean, rstd, res, branch, branch_bias, weight, bias,
                  rows, C, mask);
    end("add, LayerNorm", start, 0,
        (branch ? 4 : 2) * width() * (double)rows * C);
}

static void norm_backward(void *dres, bool add_dres, void *out, float *dweight,
                          float *dbias, bool add, const void *dout,
                          const void *sum, const float *mean, const float *rstd,
                          const void *weight, const void *bias, size_t rows,
                          int C, float *partial)
{
    double start = begin();
    state.k->norm_backward(dres, add_dres, out, dweight, dbias, add, dout, sum,
                           mean, rstd, weight, bias, rows, C, partial);
    end("LayerNorm backward", start, 0,
        (add_dres ? 5 : 4) * width() * (double)rows * C);
}

static void gelu(void *out, const void *in, const void *bias, size_t rows,
                 int C)
{
    double start = begin();
    state.k->gelu(out, in, bias, rows, C);
    end("GELU", start, 0, 2 * width() * (double)rows * C);
}

static void gelu_backward(void *d, void *out, const void *in, const void *bias,
                          size_t rows, int C)
{
    double start = begin();
    state.k->gelu_backward(d, out, in, bias, rows, C);
    end("GELU backward", start, 0, 4 * width() * (double)rows * C);
}

// The FLOP of products over the triangle alone: forward S and O, backward S,
// dP, dQ, dK and dV.
static double triangle(const struct attention *a, int products)
{
    return products * 2.0 * a->B * a->C * a->T * (a->T + 1) / 2;
}

static void attention(void *out, float *lse, const void *qkv,
                      const struct attention *a)
{
    double start = begin();
    state.k->attention(out, lse, qkv, a);
    end("attention", start, triangle(a, 2), 0);
}

static void attention_backward(void *dqkv, const void *dout, const void *out,
                               const float *lse, const void *qkv,
                               const struct attention *a)
{
    double start = begin();
    state.k->attention_backward(dqkv, dout, out, lse, qkv, a);
    end("attention backward", start, triangle(a, 5), 0);
}

static void loss(float *losses, void *dlogits, float *logits, const int32_t *y,
                 size_t rows, int V, float factor)
{
    double start = begin();
    state.k->loss(losses, dlogits, logits, y, rows, V, factor);
    end("loss", start, 0, (8 + width()) * (double)rows * V);
}

static void sum_rows(float *out, const void *in, size_t rows, int C, bool add,
                     float *partial)
{
    double start = begin();
    state.k->sum_rows(out, in, rows, C, add, partial);
    end("bias gradient", start, 0, width() * (double)rows * C);
}

static void transpose(void *out, size_t ldo, const void *in, int rows,
                      int columns)
{
    double start = begin();
    state.k->transpose(out, ldo, in, rows, columns);
    end("(in dW) transpose", start, 0, 2 * width() * (double)rows * columns);
}

static void cast_down(void *out, const float *in, size_t n)
{
    double start = begin();
    state.k->cast_down(out, in, n);
    end("16-bit weights", start, 0, (4 + width()) * (double)n);
}

extern __typeof__(kernels_find) __real_kernels_find, __wrap_kernels_find;

const struct kernels *__wrap_kernels_find(enum dtype format)
{
    const struct kernels *k = __real_kernels_find(format);
    if (!k)
        return NULL;
    state.k = k;
    struct kernels *t = &state.timed[format];
    *t = *k; // kernels that are not wrapped below count as "the rest"
    t->embed = embed;
    t->embed_backward = embed_backward;
    t->norm = norm;
    t->norm_backward = norm_backward;
    t->gelu = gelu;
    t->gelu_backward = gelu_backward;
    t->attention = attention;
    t->attention_backward = attention_backward;
    t->loss = loss;
    t->sum_rows = sum_rows;
    t->transpose = transpose;
    t->cast_down = cast_down;
    return t;
}
