// dnn_attention.c - attention as two operation graphs that cuDNN 9 recognises.
//
//     forward    S = scale Q K', -inf right of the diagonal
//                m = max S;  E = e^(S - m);  l = sum E;  lse = m + log l
//                O = (E / l) V
//     backward   row_sum = sum dO O
//                P = e^(scale Q K' - lse), 0 right of the diagonal
//                dV = P' dO;  dS = scale P (dO V' - row_sum)
//                dK = dS' Q;  dQ = dS K
//
// cuDNN finds its fused kernels by the pattern of a graph. Every cuDNN 9 knows
// these graphs, which have plain products, reductions and element-wise
// operations. Later versions also have single operations for attention: 9.13
// for forward, 9.17 for backward. In backward, dQ is the output of its product,
// and cuDNN keeps dS, 2 B NH T T bytes with T rounded up to its tiles, in the
// workspace. If dQ were summed in a tensor in fp32, cuDNN would add to it
// atomically, and runs would differ.
//
// Q, K, V and their gradients are thirds of qkv (B, T, 3C) and of dqkv. Strides
// give their places.

#include "model/cuda/dnn_attention.h"

#include "base/base.h"
#include "device/cuda.h"
#include "model/cuda/dnn_graph.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// The numbers of tensors that are in memory.
enum { Q, K, V, O, LSE, D_O, DQ, DK, DV, ROW_SUM, SCALE, HIDDEN, ONE, IDS };

enum {
    FIRST_PADDED = 91501,   // older: T must be a multiple of ROWS in backward
    FIRST_INFINITE = 91000, // older: hidden scores are -FLT_MAX
    BROKEN_FROM = 91000,    // attention is wrong from this version ..
    BROKEN_TO = 91001,      // .. to this
    ROWS = 128
};

struct dnn_attention {
    struct dnn *own; // NULL: the caller's
    struct device *dev;
    enum dtype format;
    struct attention shape;
    struct dnn_graph forward, backward;
    void *workspace;
    float scale, hidden, one;
};

// ---- graphs

struct shapes {
    enum dnn_data real;
    int64_t heads[DNN_RANK];                       // (B, NH, T, D)
    int64_t across[DNN_RANK];                      // (B, NH, D, T)
    int64_t scores[DNN_RANK];                      // (B, NH, T, T)
    int64_t rows[DNN_RANK];                        // (B, NH, T, 1)
    int64_t wide[DNN_RANK], wide_across[DNN_RANK]; // strides in (B, T, 3C)
    int64_t plain[DNN_RANK];                       // strides in (B, T, C)
    int64_t row_strides[DNN_RANK];
};

static struct shapes shapes_of(enum dtype format, const struct attention *a)
{
    int64_t B = a->B, T = a->T, C = a->C, NH = a->NH, D = C / NH;
    return (struct shapes){
        .real = format == DTYPE_BF16 ? DNN_BFLOAT16 : DNN_HALF,
        .heads = {B, NH, T, D},
        .across = {B, NH, D, T},
        .scores = {B, NH, T, T},
        .rows = {B, NH, T, 1},
        .wide = {T * 3 * C, D, 3 * C, 1},
        .wide_across = {T * 3 * C, D, 1, 3 * C},
        .plain = {T * C, D, C, 1},
        .row_strides = {NH * T, T, 1, 1},
    };
}

// A virtual tensor of scores in fp32 that holds x MODE b.
static void *scores(struct dnn_graph *g, const struct shapes *s,
                    enum dnn_pointwise mode, void *x, void *b)
{
    void *y = dnn_virtual(g, DNN_FLOAT, s->scores);
    dnn_pointwise(g, mode, x, b, y);
    return y;
}

static void *scaled_scores(struct dnn_graph *g, const struct shapes *s, void *q,
                           void *k_across, void *scale)
{
    void *x = dnn_virtual(g, DNN_FLOAT, s->scores);
    dnn_matmul(g, q, k_across, x);
    return scores(g, s, DNN_MUL, x, scale);
}

// x where the key (the column) is not later than the query (the row), else
// `hidden`.
static void *masked(struct dnn_graph *g, const struct shapes *s, void *x)
{
    void *row = dnn_virtual(g, DNN_INT32, s->scores);
    void *column = dnn_virtual(g, DNN_INT32, s->scores);
    void *keep = dnn_virtual(g, DNN_BOOLEAN, s->scores);
    void *y = dnn_virtual(g, DNN_FLOAT, s->scores);
    dnn_index(g, x, 2, row);
    dnn_index(g, x, 3, column);
    dnn_not_less(g, row, column, keep);
    dnn_select(g, keep, x, dnn_value(g, HIDDEN), y);
    return y;
}

// Opens a graph whose name for messages has the shape.
static void open_graph(struct dnn_graph *g, const struct dnn *dnn,
                       const char *what, const struct attention *a)
{
    char name[96];
    snprintf(name, sizeof name, "%s (%d, %d, %d, %d)", what, a->B, a->NH, a->T,
             a->C / a->NH);
    dnn_graph_open(g, dnn, name, IDS);
}

static int plan_forward(struct dnn_attention *a, const struct dnn *dnn)
{
    struct dnn_graph *g = &a->forward;
    struct shapes s = shapes_of(a->format, &a->shape);
    open_graph(g, dnn, "attention", &a->shape);
    void *q = dnn_tensor(g, Q, s.real, s.heads, s.wide);
    void *k = dnn_tensor(g, K, s.real, s.across, s.wide_across);
    void *v = dnn_tensor(g, V, s.real, s.heads, s.wide);
    void *o = dnn_tensor(g, O, s.real, s.heads, s.plain);
    void *lse = dnn_tensor(g, LSE, DNN_FLOAT, s.rows, s.row_strides);

    void *x = masked(g, &s, scaled_scores(g, &s, q, k, dnn_value(g, SCALE)));
    void *max = dnn_virtual(g, DNN_FLOAT, s.rows);
    dnn_reduce(g, DNN_MAX, x, max);
    void *e = scores(g, &s, DNN_EXP, scores(g, &s, DNN_SUB, x, max), NULL);
    void *sum = dnn_virtual(g, DNN_FLOAT, s.rows);
    dnn_reduce(g, DNN_SUM, e, sum);
    void *log = dnn_virtual(g, DNN_FLOAT, s.rows);
    dnn_pointwise(g, DNN_LOG, sum, NULL, log);
    dnn_pointwise(g, DNN_ADD, max, log, lse);
    void *p = dnn_virtual(g, s.real, s.scores);
    dnn_pointwise(g, DNN_DIV, e, sum, p);
    dnn_matmul(g, p, v, o);
    return dnn_graph_plan(g);
}

// x (.., T, T) transposed, in 16 bits.
static void *transposed(struct dnn_graph *g, const struct shapes *s, void *x)
{
    int64_t T = s->scores[2];
    const int64_t strides[DNN_RANK] = {s->scores[1] * T * T, T * T, 1, T};
    void *y = dnn_virtual_strided(g, s->real, s->scores, strides);
    dnn_reshape(g, x, y);
    return y;
}

// row_sum = sum of dO O over a head's channels. cuDNN's pattern has a factor
// for dropout after the sum; here it is 1.
static void *row_sums(struct dnn_graph *g, const struct shapes *s, void *d_o,
                      void *o)
{
    void *both = dnn_virtual(g, DNN_FLOAT, s->heads);
    void *sum = dnn_virtual(g, DNN_FLOAT, s->rows);
    void *row_sum = dnn_tensor(g, ROW_SUM, DNN_FLOAT, s->rows, s->row_strides);
    dnn_pointwise(g, DNN_MUL, d_o, o, both);
    dnn_reduce(g, DNN_SUM, both, sum);
    dnn_pointwise(g, DNN_MUL, sum, dnn_value(g, ONE), row_sum);
    return row_sum;
}

static int plan_backward(struct dnn_attention *a, const struct dnn *dnn)
{
    struct dnn_graph *g = &a->backward;
    struct shapes s = shapes_of(a->format, &a->shape);
    open_graph(g, dnn, "attention's backward", &a->shape);
    void *q = dnn_tensor(g, Q, s.real, s.heads, s.wide);
    void *k = dnn_tensor(g, K, s.real, s.across, s.wide_across);
    void *v = dnn_tensor(g, V, s.real, s.across, s.wide_across);
    void *o = dnn_tensor(g, O, s.real, s.heads, s.plain);
    void *d_o = dnn_tensor(g, D_O, s.real, s.heads, s.plain);
    void *lse = dnn_tensor(g, LSE, DNN_FLOAT, s.rows, s.row_strides);
    void *scale = dnn_value(g, SCALE);

    void *row_sum = row_sums(g, &s, d_o, o);
    void *x = scaled_scores(g, &s, q, k, scale);
    x = masked(g, &s, scores(g, &s, DNN_SUB, x, lse));
    void *p = scores(g, &s, DNN_EXP, x, NULL);
    dnn_matmul(g, transposed(g, &s, p), d_o,
               dnn_tensor(g, DV, s.real, s.heads, s.wide));

    void *dp = dnn_virtual(g, DNN_FLOAT, s.scores);
    dnn_matmul(g, d_o, v, dp);
    void *ds = scores(g, &s, DNN_SUB, dp, row_sum);
    ds = scores(g, &s, DNN_MUL, ds, p);
    ds = scores(g, &s, DNN_MUL, ds, scale);
    dnn_matmul(g, transposed(g, &s, ds), q,
               dnn_tensor(g, DK, s.real, s.heads, s.wide));
    void *k_rows = dnn_virtual_strided(g, DNN_FLOAT, s.heads, s.wide);
    dnn_reshape(g, k, k_rows);
    dnn_matmul(g, ds, k_rows, dnn_tensor(g, DQ, s.real, s.heads, s.wide));
    return dnn_graph_plan(g);
}

// ---- open and close

// In some versions attention is wrong; in some, T must be a multiple of ROWS in
// backward. The frontend 1.32 of cuDNN has the same checks.
static int check_version(const struct dnn *dnn, const struct attention *a,
                         bool train)
{
    char what[64];
    size_t version = dnn->version;
    if (version >= BROKEN_FROM && version <= BROKEN_TO)
        snprintf(what, sizeof what, "its attention is wrong");
    else if (train && version < FIRST_PADDED && a->T % ROWS)
        snprintf(what, sizeof what, "%d tokens are no multiple of %d", a->T,
                 ROWS);
    else
        return 0;
    return fail("attention=cudnn: cuDNN %s: %s; try: cuDNN 9.15.1 or newer, or "
                "attention=ours",
                dnn->release, what);
}

int dnn_attention_plan(struct dnn_attention **out, const struct dnn *dnn,
                       enum dtype format, const struct attention *shape,
                       bool train, size_t *workspace)
{
    int D = shape->C / shape->NH;
    CHECK(format != DTYPE_F32);
    if (D % 8)
        return fail("attention=cudnn: a head has %d channels, cuDNN takes "
                    "multiples of 8; try: other heads, or attention=ours",
                    D);
    if (train && shape->T < 2)
        return fail("attention=cudnn: %d token, cuDNN's backward takes 2 or "
                    "more; try: a longer context, or attention=ours",
                    shape->T);
    if (check_version(dnn, shape, train))
        return -1;
    struct dnn_attention *a = mem_alloc(1, sizeof *a);
    if (!a)
        return -1;
    *a = (struct dnn_attention){
        .format = format,
        .shape = *shape,
        .scale = 1 / sqrtf((float)D),
        .hidden = dnn->version < FIRST_INFINITE ? -FLT_MAX : -INFINITY,
        .one = 1,
    };
    if (plan_forward(a, dnn) || (train && plan_backward(a, dnn))) {
        dnn_attention_close(&a);
        return -1;
    }
    size_t f = a->forward.workspace, b = a->backward.workspace;
    *workspace = f > b ? f : b;
    *out = a;
    return 0;
}

// The kernels with the same bits in every run are chosen in another way on GPUs
// of compute capability 10 and 11.
static int check_gpu(const struct device *d)
{
    int capability = cuda_capability(d);
    int major = capability / 10, minor = capability % 10;
    if (capability < 80)
        return fail("attention=cudnn: %s has compute capability %d.%d, cuDNN "
                    "has fused kernels for 8.0 and newer; try: attention=ours",
                    cuda_name(d), major, minor);
    if (capability >= 100 && capability < 120)
        return fail("attention=cudnn: %s has compute capability %d.%d, reruns "
                    "have the same bits on 8.x, 9.x and 12.x only; try: "
                    "attention=ours",
                    cuda_name(d), major, minor);
    return 0;
}

int dnn_attention_open(struct dnn_attention **out, struct device *d,
                       enum dtype format, const struct attention *shape,
                       bool train)
{
    struct dnn_attention *a = NULL;
    size_t bytes;
    if (check_gpu(d))
        return -1;
    struct dnn *dnn = mem_alloc(1, sizeof *dnn);
    if (!dnn)
        return -1;
    int rc = dnn_open(dnn, device_handle(d, DEVICE_COMPUTE));
    dnn->gpu = cuda_name(d);
    if (rc || dnn_attention_plan(&a, dnn, format, shape, train, &bytes)) {
        dnn_close(dnn);
        mem_free(dnn);
        return -1;
    }
    a->own = dnn;
    a->dev = d;
    a->workspace = bytes ? device_alloc(d, bytes, 1) : NULL;
    if (bytes && !a->workspace) {
        fail("attention=cudnn: cuDNN's workspace: %s, or attention=ours",
             fail_message());
        dnn_attention_close(&a);
        return -1;
    }
    log_line("cuDNN %s: attention (%d, %d, %d, %d) in %s, workspace %.1f MiB",
             dnn->release, shape->B, shape->NH, shape->T, shape->C / shape->NH,
             dtype_name(format), (double)bytes / 1048576);
    *out = a;
    return 0;
}

void dnn_attention_close(struct dnn_attention **aa)
{
    struct dnn_attention *a = *aa;
    if (!a)
        return;
    if (a->forward.dnn)
        dnn_graph_close(&a->forward);
    if (a->backward.dnn)
        dnn_graph_close(&a->backward);
    if (a->own) {
        device_free(a->dev, a->workspace);
        dnn_close(a->own);
        mem_free(a->own);
    }
    mem_free(a);
    *aa = NULL;
}

bool dnn_attention_fits(const struct dnn_attention *a, enum dtype format,
                        const struct attention *shape)
{
    const struct attention *s = &a->shape;
    return s->B == shape->B && s->T == shape->T && s->C == shape->C &&
           s->NH == shape->NH && a->format == format;
}

// ---- running

// The backend's functions take pointers without const, but do not change
// inputs.
static void *in(const void *p)
{
    return (void *)(uintptr_t)p;
}

// The address of third 0, 1 or 2 of a row of qkv or dqkv.
static void *third(const struct dnn_attention *a, const void *qkv, int i)
{
    size_t bytes = (size_t)a->shape.C * dtype_bytes(a->format);
    return (char *)in(qkv) + (size_t)i * bytes;
}

static int enqueue(const struct dnn_attention *a, const struct dnn_graph *g,
                   int n, const int64_t *ids, void *const *pointers)
{
    int status = dnn_graph_run(g, n, ids, pointers, a->workspace);
    return status ? dnn_fail(g->dnn, g->name, status) : 0;
}

static void must(int rc)
{
    if (rc == 0)
        return;
    log_line("%s", fail_message());
    abort(); // so the launcher sees a lost rank and stops the others
}

static int forward(const struct dnn_attention *a, void *out, float *lse,
                   const void *qkv)
{
    enum { N = 7 };
    const int64_t ids[N] = {Q, K, V, O, LSE, SCALE, HIDDEN};
    void *const pointers[N] = {
        third(a, qkv, 0), third(a, qkv, 1), third(a, qkv, 2), out, lse,
        in(&a->scale),    in(&a->hidden)};
    return enqueue(a, &a->forward, N, ids, pointers);
}

static int backward(const struct dnn_attention *a, void *dqkv, float *row_sum,
                    const void *dout, const void *out, const float *lse,
                    const void *qkv)
{
    const int64_t ids[IDS] = {Q,  K,  V,       O,     LSE,    D_O, DQ,
                              DK, DV, ROW_SUM, SCALE, HIDDEN, ONE};
    void *const pointers[IDS] = {third(a, qkv, 0),  third(a, qkv, 1),
                                 third(a, qkv, 2),  in(out),
                                 in(lse),           in(dout),
                                 third(a, dqkv, 0), third(a, dqkv, 1),
                                 third(a, dqkv, 2), row_sum,
                                 in(&a->scale),     in(&a->hidden),
                                 in(&a->one)};
    return enqueue(a, &a->backward, IDS, ids, pointers);
}

int dnn_attention_try(const struct dnn_attention *a, void *dqkv, float *row_sum,
                      void *dout, void *out, float *lse, void *qkv)
{
    if (forward(a, out, lse, qkv) ||
        (dqkv && backward(a, dqkv, row_sum, dout, out, lse, qkv)))
        return -1;
    device_finish(a->dev);
    return 0;
}

void dnn_attention_forward(const struct dnn_attention *a, void *out, float *lse,
                           const void *qkv)
{
    must(forward(a, out, lse, qkv));
}

void dnn_attention_backward(const struct dnn_attention *a, void *dqkv,
                            float *row_sum, const void *dout, const void *out,
                            const float *lse, const void *qkv)
{
    must(backward(a, dqkv, row_sum, dout, out, lse, qkv));
}
