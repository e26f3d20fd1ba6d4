// gpu_ops.c - times the operations of a training step on a GPU, and prints each
// with its lower bound.
//
// The numbers are random, as in a model: on zeros a GPU needs less power and
// runs at a higher clock rate. The letters of shapes are those of model/. A
// slice is S rows of logits.

#include "bench/gpu_ops.h"

#include "base/base.h"
#include "base/median.h"
#include "device/cuda.h"
#include "model/cuda/dnn_attention.h"
#include "model/cuda/kernels_cuda.h"
#include "model/cuda/peak.h"
#include "model/cuda/product_cuda.h"
#include "optim/rule.h"

#include <stdio.h>

enum { ROUNDS = 10, WARM = 3, LINE = 64, MOST_TENSORS = 16 };

static const size_t slice_numbers = (size_t)1
                                    << 28; // as model/cuda/model_cuda.c

struct ops {
    struct device *dev;
    const struct workload_case *is;
    enum dtype format;
    size_t size; // of a number
    struct device_event from, to;
    double peak, rate;
    void *tensors[MOST_TENSORS];
    int ntensors;

    int C, V, S;
    size_t rows, stride;
    char *x, *y, *z, *w; // (N, 4C) each; w the larger of (C, 4C), (V, C)
    float *f, *g;        // as large as the largest of (B, NH, T), (N), (4C)
    float *dw, *partial;
    void *logits;
    int32_t *tokens;
    struct cuda_tokens by_token;
    struct cuda_product *product;
    struct product_job job; // the product being timed
    struct dnn_attention *dnn;
    struct mask mask;
    struct rule rule;
    struct half_copy copy;
};

// ---- memory

static void *take(struct ops *o, size_t n, size_t size)
{
    void *p = device_alloc(o->dev, n, size);
    CHECK(o->ntensors < MOST_TENSORS);
    if (p)
        o->tensors[o->ntensors++] = p;
    return p;
}

static void *draw(struct ops *o, size_t n)
{
    void *p = take(o, n, o->size);
    return p && !cuda_draw(o->dev, o->format, p, n) ? p : NULL;
}

// Makes a batch's tokens, and sorts its rows by token.
static int sort_tokens(struct ops *o)
{
    int n = (int)o->rows;
    struct cuda_tokens *t = &o->by_token;
    int32_t *host = mem_alloc(4 * o->rows + 1, sizeof *host);
    int32_t *scratch = mem_alloc((size_t)o->V + 1, sizeof *scratch);
    int rc = host && scratch ? 0 : -1;
    int32_t *order = host + n, *start = order + n, *token = start + n + 1;
    for (int i = 0; !rc && i < n; i++)
        host[i] = (int32_t)((int64_t)i * 7919 % o->V);
    if (!rc)
        t->kinds = cuda_tokens_sort(order, start, token, scratch, host, n,
                                    (struct words){0, o->V});
    o->tokens = take(o, 4 * o->rows + 1, sizeof *o->tokens);
    rc = rc || !o->tokens ? -1 : 0;
    if (!rc) {
        device_copy(o->dev, o->tokens, host, (4 * o->rows + 1) * sizeof *host);
        t->order = o->tokens + n;
        t->start = t->order + n;
        t->token = t->start + n + 1;
    }
    mem_free(host);
    mem_free(scratch);
    return rc;
}

static int open_tensors(struct ops *o)
{
    size_t C = (size_t)o->C, V = (size_t)o->V, n = o->rows * C;
    o->stride = (V + LINE - 1) / LINE * LINE;
    size_t matrix = C * (o->stride > 4 * C ? o->stride : 4 * C);
    o->S = (int)(slice_numbers / o->stride);
    o->S = o->S < (int)o->rows ? o->S : (int)o->rows;
    o->x = draw(o, 4 * n);
    o->y = draw(o, 4 * n);
    o->z = draw(o, 4 * n);
    o->w = draw(o, matrix);
    size_t sums = o->rows * (size_t)o->is->config.heads;
    sums = sums > 4 * C ? sums : 4 * C;
    o->f = take(o, sums, sizeof(float));
    o->g = take(o, sums, sizeof(float));
    o->dw = take(o, matrix, sizeof(float));
    o->logits = take(o, (size_t)o->S * o->stride, o->size);
    o->partial = take(o, cuda_partial(4 * o->C), sizeof(float));
    return o->x && o->y && o->z && o->w && o->f && o->g && o->dw && o->logits &&
                   o->partial
               ? sort_tokens(o)
               : -1;
}

static void close_tensors(struct ops *o)
{
    for (int i = 0; i < o->ntensors; i++)
        device_free(o->dev, o->tensors[i]);
    o->ntensors = 0;
}

// ---- one line

static int time_of(struct ops *o, int (*fn)(struct ops *o), double *seconds)
{
    double t[ROUNDS];
    for (int i = -WARM; i < ROUNDS; i++) {
        device_record(o->dev, &o->from, DEVICE_COMPUTE);
        if (fn(o))
            return -1;
        device_record(o->dev, &o->to, DEVICE_COMPUTE);
        device_wait(o->dev, &o->to);
        if (i >= 0)
            t[i] = (double)device_between(o->dev, &o->from, &o->to) * 1e-9;
    }
    *seconds = median(t, ROUNDS);
    return 0;
}

static int line(struct ops *o, const char *name, int (*fn)(struct ops *o),
                double flop, double bytes)
{
    double by_flop = flop / o->peak, t;
    double by_bytes = o->rate > 0 ? bytes / o->rate : 0;
    double least = by_flop > by_bytes ? by_flop : by_bytes;
    if (time_of(o, fn, &t))
        return -1;
    printf("#   %-30s %-5s %9.3f ms, bound %9.3f ms (%s): %5.1f%%\n", name,
           o->is->name, t * 1e3, least * 1e3,
           by_flop > by_bytes ? "arithmetic" : "bytes", 100 * least / t);
    return 0;
}

// ---- products

static int run_product(struct ops *o)
{
    cuda_product_run(o->product, &o->job);
    return 0;
}

static int product(struct ops *o, const char *name, const char *what, int m,
                   int n, int k, struct product_job job)
{
    char text[64];
    double size = (double)o->size, left = (double)m * k, right = (double)k * n;
    double out = (double)m * n;
    snprintf(text, sizeof text, "%s%s", name, what);
    o->job = job;
    o->job.m = m;
    o->job.n = n;
    o->job.k = k;
    return line(o, text, run_product, 2 * out * k,
                (left + right) * size +
                    out * (job.out_fp32 ? sizeof(float) : size) *
                        (job.add ? 2 : 1) +
                    (job.pre ? out * size : 0));
}

// Times y = x W + b and its gradients. With `gelu` the product also computes
// GELU. With `after_gelu` the gradient of x includes that of GELU.
static int linear(struct ops *o, const char *name, int ins, int outs, bool gelu,
                  bool after_gelu)
{
    int N = (int)o->rows;
    struct product_job y = {.a = o->x,
                            .b = o->w,
                            .bias = o->w,
                            .epilogue = gelu ? EPILOGUE_GELU : EPILOGUE_BIAS,
                            .pre = gelu ? o->z : NULL,
                            .out = o->y};
    struct product_job dx = {.tb = true,
                             .a = o->x,
                             .b = o->w,
                             .epilogue =
                                 after_gelu ? EPILOGUE_DGELU : EPILOGUE_NONE,
                             .pre = after_gelu ? o->z : NULL,
                             .out = o->y};
    struct product_job dw = {.ta = true,
                             .a = o->x,
                             .b = o->z,
                             .out = o->dw,
                             .out_fp32 = true,
                             .epilogue = EPILOGUE_BIAS_GRAD,
                             .bias_grad = o->f};
    const char *what = after_gelu ? ", of input and GELU" : ", of input";
    return product(o, name, gelu ? " and GELU" : "", N, outs, ins, y) ||
                   product(o, name, what, N, ins, outs, dx) ||
                   product(o, name, ", of weight and bias", ins, outs, N, dw)
               ? -1
               : 0;
}

static int head(struct ops *o)
{
    int S = o->S, C = o->C, V = (int)o->stride;
    struct product_job y = {.tb = true,
                            .a = o->x,
                            .b = o->w,
                            .out = o->logits,
                            .out_row = o->stride};
    struct product_job dx = {.a = o->logits,
                             .a_row = o->stride,
                             .b = o->w,
                             .out = o->y};
    struct product_job dw = {.ta = true,
                             .a = o->logits,
                             .a_row = o->stride,
                             .b = o->x,
                             .out = o->dw,
                             .out_fp32 = true,
                             .add = true};
    return product(o, "head", "", S, V, C, y) ||
                   product(o, "head", ", of input", S, C, V, dx) ||
                   product(o, "head", ", of weight", V, C, S, dw)
               ? -1
               : 0;
}

static int products(struct ops *o)
{
    int C = o->C;
    return linear(o, "qkv", C, 3 * C, false, false) ||
                   linear(o, "projection", C, C, false, false) ||
                   linear(o, "fc", C, 4 * C, true, false) ||
                   linear(o, "out", 4 * C, C, false, true) || head(o)
               ? -1
               : 0;
}

// ---- operations other than products

static struct attention attention_of(const struct ops *o)
{
    const struct workload_case *c = o->is;
    return (struct attention){.B = c->batch,
                              .T = c->tokens,
                              .C = o->C,
                              .NH = c->config.heads,
                              .mask = {.keep = 1},
                              .scratch = o->g};
}

static int attend(struct ops *o)
{
    struct attention a = attention_of(o);
    kernels_cuda.attention(o->y, o->f, o->x, &a);
    return 0;
}

static int attend_back(struct ops *o)
{
    struct attention a = attention_of(o);
    kernels_cuda.attention_backward(o->z, o->y, o->y, o->f, o->x, &a);
    return 0;
}

static int attend_dnn(struct ops *o)
{
    dnn_attention_forward(o->dnn, o->y, o->f, o->x);
    return 0;
}

static int attend_dnn_back(struct ops *o)
{
    dnn_attention_backward(o->dnn, o->z, o->g, o->y, o->y, o->f, o->x);
    return 0;
}

// With attention=cudnn: cuDNN's attention.
static int attentions_by_dnn(struct ops *o, double pairs, double bytes)
{
    struct attention a = attention_of(o);
    if (!o->is->cudnn)
        return 0;
    if (dnn_attention_open(&o->dnn, o->dev, o->format, &a, true))
        return -1;
    int rc = line(o, "attention by cuDNN", attend_dnn, pairs, 4 * bytes) ||
             line(o, "attention by cuDNN, backward", attend_dnn_back,
                  2.5 * pairs, 8 * bytes);
    dnn_attention_close(&o->dnn);
    return rc ? -1 : 0;
}

static int embed(struct ops *o)
{
    kernels_cuda.embed(o->y, o->w, o->w, o->tokens, o->rows, o->is->tokens,
                       o->C, &o->mask);
    return 0;
}

static int embed_back(struct ops *o)
{
    kernels_cuda.embed_backward(o->dw, o->dw, o->x, o->tokens,
                                (struct words){0, o->V}, o->rows, o->is->tokens,
                                o->C, true, &o->mask);
    return 0;
}

static int norm(struct ops *o)
{
    size_t n = o->rows * (size_t)o->C * o->size;
    kernels_cuda.norm(o->y, o->y + n, o->f, o->g, o->x, o->z, NULL, o->w, o->w,
                      o->rows, o->C, &o->mask);
    return 0;
}

static int norm_back(struct ops *o)
{
    size_t n = o->rows * (size_t)o->C * o->size;
    kernels_cuda.norm_backward(o->y, true, o->y + n, o->dw, o->dw + o->C, false,
                               o->x, o->z, o->f, o->g, o->w, o->w, o->rows,
                               o->C, o->partial);
    return 0;
}

static int loss(struct ops *o)
{
    kernels_cuda.loss(o->f, o->logits, o->logits, o->tokens, (size_t)o->S, o->V,
                      1);
    return 0;
}

static int others(struct ops *o)
{
    double n = (double)o->rows * o->C, size = (double)o->size;
    double pairs = 2 * n * o->is->tokens; // two products, half of each
    double slice = (double)o->S * o->V;
    const struct cuda_model m = {.queue = device_handle(o->dev, DEVICE_COMPUTE),
                                 .format = o->format,
                                 .tf32 = o->is->tf32,
                                 .stride = o->stride,
                                 .tokens = o->by_token};
    cuda_begin(&m);
    int rc = line(o, "attention", attend, pairs, 4 * n * size) ||
             line(o, "attention, backward", attend_back, 2.5 * pairs,
                  8 * n * size) ||
             attentions_by_dnn(o, pairs, n * size) ||
             line(o, "embedding", embed, 0, 2 * n * size) ||
             line(o, "embedding, backward", embed_back, 0,
                  n * size + 8.0 * o->by_token.kinds * o->C) ||
             line(o, "add and LayerNorm", norm, 0, 4 * n * size) ||
             line(o, "LayerNorm, backward", norm_back, 0, 5 * n * size) ||
             line(o, "loss and its gradient", loss, 0, 2 * slice * size);
    cuda_end();
    return rc ? -1 : 0;
}

// ---- the update

static int update(struct ops *o)
{
    struct rule_in in = {.step = 1,
                         .lr = 1e-4f,
                         .scale = 1,
                         .copy = o->format == DTYPE_F32 ? NULL : &o->copy};
    float length;
    return rule_step(&o->rule, o->f, o->g, &in, &length);
}

// The update reads the parameters, AdamW's two vectors and the gradient, and
// the gradient a second time for its norm. It writes the parameters, the two
// vectors and the 16-bit weights.
static int measure_update(struct ops *o)
{
    static const struct optim_config adamw = {.kind = OPTIM_ADAMW,
                                              .beta1 = 0.9f,
                                              .beta2 = 0.95f,
                                              .eps = 1e-8f};
    size_t n = model_nparams(&o->is->config);
    double bytes = 32 + (o->format == DTYPE_F32 ? 0 : 2);
    o->f = take(o, n, sizeof(float));
    o->g = take(o, n, sizeof(float));
    o->copy =
        (struct half_copy){.format = o->format, .at = take(o, n, o->size)};
    int rc = o->f && o->g && o->copy.at ? 0 : -1;
    if (!rc)
        rc = rule_open(&o->rule, o->dev, &adamw, n, NULL);
    if (!rc)
        rc = line(o, "norm and AdamW", update, 0, bytes * (double)n);
    rule_close(&o->rule);
    return rc;
}

int gpu_ops(struct device *d, const struct workload_case *c, double peak)
{
    struct ops o = {.dev = d,
                    .is = c,
                    .format = c->precision,
                    .size = dtype_bytes(c->precision),
                    .peak = peak,
                    .rate = cuda_bandwidth(d),
                    .C = c->config.channels,
                    .V = c->config.vocab,
                    .rows = (size_t)c->batch * (size_t)c->tokens,
                    .mask = {.keep = 1}};
    int rc = device_event_open_timed(d, &o.from) ||
             device_event_open_timed(d, &o.to) || open_tensors(&o) ||
             cuda_product_open(&o.product, d, o.format, c->tf32, o.partial) ||
             products(&o) || others(&o);
    cuda_product_close(&o.product);
    close_tensors(&o);
    if (!rc)
        rc = measure_update(&o);
    close_tensors(&o);
    device_event_close(d, &o.from);
    device_event_close(d, &o.to);
    return rc ? -1 : 0;
}
