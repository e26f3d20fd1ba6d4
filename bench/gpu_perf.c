// gpu_perf.c - how fast a step of GPT-2 is on a GPU, beside what it could be.
//
//     gpu_perf [model=gpt2] [batch=32] [fp32|tf32|bf16|fp16 ...] [steps=20]
//
// A row a format: tokens/s, and the model's arithmetic over the step's time as
// a share of two peaks: the best matrix product measured in the same run, and
// the data sheet's (dense). Then single operations beside their floor: the
// bytes that they must move over the memory's rate, or their arithmetic over
// the measured peak. Times are from events on the compute queue; medians.
// PyTorch on the same card: tests/oracle/gpt2_torch_gpu.py.

#include "base/base.h"
#include "device/cuda.h"
#include "model/cuda/kernels.h"
#include "model/cuda/product.h"
#include "model/model.h"
#include "optim/rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 5, MOST_STEPS = 1000, PEAK_SIDE = 8192, SKIPPED = 77 };

struct way {
    const char *name;
    enum dtype format;
    bool tf32, wanted;
};

static struct way ways[] = {{"fp32", DTYPE_F32, false, false},
                            {"tf32", DTYPE_F32, true, false},
                            {"bf16", DTYPE_BF16, false, false},
                            {"fp16", DTYPE_F16, false, false}};

enum { WAYS = sizeof ways / sizeof *ways };

// Dense TFLOP/s as NVIDIA's data sheets give them: fp32, TF32, bf16, fp16.
static const struct sheet {
    const char *part; // of the device's name
    double tflops[WAYS];
} sheets[] = {
    {"H200", {67, 494.7, 989.4, 989.4}}, {"H100 PCIe", {51, 378, 756, 756}},
    {"H100", {67, 494.7, 989.4, 989.4}}, {"A100", {19.5, 156, 312, 312}},
    {"L40S", {91.6, 183, 362, 362}},     {"Tesla T4", {8.1, 0, 0, 65}},
};

static double sheet_tflops(const char *device, int way)
{
    for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++)
        if (strstr(device, sheets[i].part))
            return sheets[i].tflops[way];
    return 0; // not known: the column stays empty
}

// ---- time

struct watch {
    struct device *dev;
    struct device_event from, to;
};

static void start(struct watch *w)
{
    device_record(w->dev, &w->from, DEVICE_COMPUTE);
}

static double stop(struct watch *w) // s
{
    uint64_t ns = 0;
    device_record(w->dev, &w->to, DEVICE_COMPUTE);
    device_wait(w->dev, &w->to);
    device_between(w->dev, &w->from, &w->to, &ns);
    return (double)ns * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[n / 2];
}

// The median of 10 rounds of fn(ctx), after 3 that are not counted.
static double time_of(struct watch *w, void (*fn)(void *ctx), void *ctx)
{
    double t[10];
    for (int i = -3; i < 10; i++) {
        start(w);
        fn(ctx);
        double s = stop(w);
        if (i >= 0)
            t[i] = s;
    }
    return median(t, 10);
}

// ---- the peak

struct product {
    struct cuda_product *p;
    struct cuda_product_job job;
};

static void run_product(void *ctx)
{
    struct product *p = ctx;
    cuda_product_run(p->p, &p->job);
}

static double measured_flops(struct watch *w, const struct way *way)
{
    size_t n = (size_t)PEAK_SIDE * PEAK_SIDE, size = dtype_bytes(way->format);
    struct device *d = w->dev;
    struct product p = {
        .job = {.m = PEAK_SIDE, .n = PEAK_SIDE, .k = PEAK_SIDE}};
    void *a = device_alloc(d, n, size), *b = device_alloc(d, n, size);
    void *out = device_alloc(d, n, size);
    if (!a || !b || !out ||
        cuda_product_open(&p.p, d, way->format, way->tf32, NULL))
        die("%s", fail_message());
    p.job.a = a;
    p.job.b = b;
    p.job.out = out;
    double s = time_of(w, run_product, &p);
    cuda_product_close(&p.p);
    device_free(d, a);
    device_free(d, b);
    device_free(d, out);
    return 2.0 * PEAK_SIDE * PEAK_SIDE * PEAK_SIDE / s;
}

// ---- whole steps

struct subject {
    struct model_job job;
    struct model *model;
    struct rule rule;
    size_t n;
    int32_t *x;
};

static int subject_open(struct subject *s, struct device *d,
                        const struct model_config *config, int batch,
                        const struct way *way)
{
    static const struct optim_config adamw = {.kind = OPTIM_ADAMW,
                                              .beta1 = 0.9f,
                                              .beta2 = 0.95f,
                                              .eps = 1e-8f};
    size_t rows = (size_t)batch * (size_t)config->context;
    *s = (struct subject){.job = {.config = *config,
                                  .precision = way->format,
                                  .batch = batch,
                                  .tokens = config->context,
                                  .train = true,
                                  .dev = d,
                                  .tf32 = way->tf32},
                          .n = model_nparams(config)};
    float *init = mem_alloc(s->n, sizeof *init);
    s->job.params = device_alloc(d, s->n, sizeof(float));
    s->job.grads = device_alloc(d, s->n, sizeof(float));
    s->x = mem_alloc(rows + 1, sizeof *s->x);
    if (!init || !s->job.params || !s->job.grads || !s->x)
        return -1;
    for (size_t i = 0; i <= rows; i++)
        s->x[i] = (int32_t)(i * 7919 % (size_t)config->vocab);
    model_init(config, 1, init);
    int rc = device_copy(d, s->job.params, init, s->n * sizeof *init);
    mem_free(init);
    if (rc || model_open(&s->model, &s->job))
        return -1;
    return rule_open(&s->rule, d, &adamw, s->n);
}

static void subject_close(struct subject *s)
{
    model_close(&s->model);
    rule_close(&s->rule);
    device_free(s->job.dev, s->job.params);
    device_free(s->job.dev, s->job.grads);
    mem_free(s->x);
}

static void step(struct subject *s, int i)
{
    float loss, norm, scale = s->job.precision == DTYPE_F16 ? 1024 : 1;
    struct model_step m = {.x = s->x, .y = s->x + 1, .step = i, .scale = scale};
    struct rule_in in = {i + 1, 1e-4f, 1 / scale, 1, model_copy(s->model)};
    if (model_train(s->model, &m, &loss) ||
        rule_step(&s->rule, s->job.params, s->job.grads, &in, &norm))
        die("%s", fail_message());
    if (isfinite(norm))
        model_params_changed(s->model);
}

static double flop_a_token(const struct model_config *g)
{
    double n = (double)model_nparams(g) - (double)g->context * g->channels;
    return 6 * n + 12.0 * g->layers * g->channels * g->context;
}

static void measure_steps(struct watch *w, const struct model_config *config,
                          int batch, int steps, int way)
{
    static double t[MOST_STEPS];
    struct subject s;
    double peak = measured_flops(w, &ways[way]) * 1e-12;
    double sheet = sheet_tflops(cuda_name(w->dev), way);
    while (subject_open(&s, w->dev, config, batch, &ways[way])) {
        subject_close(&s);
        if (batch == 1)
            die("%s", fail_message());
        batch /= 2; // the card holds no more
    }
    for (int i = -WARM; i < steps; i++) {
        start(w);
        step(&s, i + WARM);
        double one = stop(w);
        if (i >= 0)
            t[i] = one;
    }
    double one = median(t, steps), tokens = (double)batch * config->context;
    double tflops = tokens * flop_a_token(config) / one * 1e-12;
    printf("%-5s %4d x %4d %9.2f %10.0f %8.1f %8.1f %7.1f%%", ways[way].name,
           batch, config->context, one * 1e3, tokens / one, tflops, peak,
           100 * tflops / peak);
    if (sheet > 0)
        printf(" %8.1f %7.1f%%", sheet, 100 * tflops / sheet);
    printf("\n");
    fflush(stdout);
    subject_close(&s);
}

// ---- single operations

struct shapes {
    struct device *dev;
    void *queue;
    enum dtype format;
    struct cuda_attention attention;
    size_t rows;
    int C;
    char *a, *b, *c;
    float *f, *g;
    struct mask mask;
};

static void attend(void *ctx)
{
    struct shapes *s = ctx;
    cuda_attention(s->queue, s->a, s->f, s->b, &s->attention);
}

static void attend_back(void *ctx)
{
    struct shapes *s = ctx;
    cuda_attention_backward(s->queue, s->c, s->g, s->a, s->a, s->f, s->b,
                            &s->attention);
}

static void norm(void *ctx)
{
    struct shapes *s = ctx;
    size_t half = s->rows * (size_t)s->C * dtype_bytes(s->format);
    cuda_norm(s->queue, s->format, s->c, s->c + half, s->f, s->g, s->b, s->a,
              s->b, s->b, s->rows, s->C, &s->mask);
}

static void gelu(void *ctx)
{
    struct shapes *s = ctx;
    cuda_gelu(s->queue, s->format, s->c, s->b, s->rows * (size_t)s->C);
}

static void print_op(struct watch *w, const char *name, void (*fn)(void *),
                     struct shapes *s, double floor_s, const char *why)
{
    double t = time_of(w, fn, s);
    printf("#   %-20s %-5s %9.3f ms, floor %9.3f ms (%s): %5.1f%%\n", name,
           dtype_name(s->format), t * 1e3, floor_s * 1e3, why,
           100 * floor_s / t);
}

static void measure_ops(struct watch *w, const struct model_config *g,
                        int batch, int way)
{
    enum dtype t = ways[way].format;
    size_t rows = (size_t)batch * (size_t)g->context, size = dtype_bytes(t);
    double rate = cuda_bandwidth(w->dev), n = (double)rows * g->channels;
    struct device *d = w->dev;
    struct shapes s = {.dev = d,
                       .queue = device_handle(d, DEVICE_COMPUTE),
                       .format = t,
                       .attention = {batch,
                                     g->context,
                                     g->channels,
                                     g->heads,
                                     t,
                                     ways[way].tf32,
                                     {.keep = 1}},
                       .rows = rows,
                       .C = g->channels,
                       .mask = {.keep = 1}};
    s.a = device_alloc(d, rows * (size_t)g->channels, size);
    s.b = device_alloc(d, 3 * rows * (size_t)g->channels, size);
    s.c = device_alloc(d, 3 * rows * (size_t)g->channels, size);
    s.f = device_alloc(d, rows * (size_t)g->heads, sizeof(float));
    s.g = device_alloc(d, rows * (size_t)g->heads, sizeof(float));
    if (!s.a || !s.b || !s.c || !s.f || !s.g)
        die("%s", fail_message());
    double peak = measured_flops(w, &ways[way]);
    double causal = 2.0 * n * g->context; // 2 products, half of each
    print_op(w, "attention", attend, &s, causal / peak, "arithmetic");
    print_op(w, "attention backward", attend_back, &s, 2.5 * causal / peak,
             "arithmetic");
    if (rate > 0) {
        print_op(w, "add and LayerNorm", norm, &s, 4 * n * (double)size / rate,
                 "bytes");
        print_op(w, "gelu", gelu, &s, 2 * n * (double)size / rate, "bytes");
    }
    void *all[] = {s.a, s.b, s.c, s.f, s.g};
    for (int i = 0; i < 5; i++)
        device_free(d, all[i]);
}

struct update {
    struct rule rule;
    float *p, *g;
};

static void update(void *ctx)
{
    struct update *u = ctx;
    struct rule_in in = {1, 1e-4f, 1, 0, NULL};
    float length;
    if (rule_step(&u->rule, u->p, u->g, &in, &length))
        die("%s", fail_message());
}

static void measure_update(struct watch *w, const struct model_config *g)
{
    static const struct optim_config adamw = {.kind = OPTIM_ADAMW,
                                              .beta1 = 0.9f,
                                              .beta2 = 0.95f,
                                              .eps = 1e-8f};
    size_t n = model_nparams(g);
    double rate = cuda_bandwidth(w->dev);
    struct update u = {.p = device_alloc(w->dev, n, sizeof(float)),
                       .g = device_alloc(w->dev, n, sizeof(float))};
    if (!u.p || !u.g || rule_open(&u.rule, w->dev, &adamw, n))
        die("%s", fail_message());
    double t = time_of(w, update, &u);
    if (rate > 0) // the norm reads the gradient once more
        printf("#   %-20s %-5s %9.3f ms, floor %9.3f ms (bytes): %5.1f%%\n",
               "norm and AdamW", "fp32", t * 1e3, 32.0 * (double)n / rate * 1e3,
               100 * 32.0 * (double)n / rate / t);
    rule_close(&u.rule);
    device_free(w->dev, u.p);
    device_free(w->dev, u.g);
}

// ---- the words

static void read_word(const char *word, struct model_config *config, int *batch,
                      int *steps)
{
    for (int i = 0; i < WAYS; i++)
        if (!strcmp(word, ways[i].name)) {
            ways[i].wanted = true;
            return;
        }
    if (!strncmp(word, "model=", 6)) {
        if (model_preset(word + 6, config))
            die("%s", fail_message());
    } else if (sscanf(word, "batch=%d", batch) != 1 &&
               sscanf(word, "steps=%d", steps) != 1) {
        die("%s: not a word of this; try: model=gpt2 batch=32 steps=20 bf16",
            word);
    }
    if (*batch < 1 || *steps < 1 || *steps > MOST_STEPS)
        die("%s: out of range", word);
}

int main(int argc, char **argv)
{
    struct model_config config;
    struct watch w = {.dev = NULL};
    int batch = 32, steps = 20;
    bool all = true;
    if (model_preset("gpt2", &config))
        die("%s", fail_message());
    for (int i = 1; i < argc; i++)
        read_word(argv[i], &config, &batch, &steps);
    if (config.vocab == 0)
        config.vocab = 256;
    if (device_open(&w.dev, "cuda")) {
        printf("skipped: %s\n", fail_message());
        return SKIPPED;
    }
    device_event_open(w.dev, &w.from);
    device_event_open(w.dev, &w.to);
    for (int i = 0; i < WAYS; i++)
        all = all && !ways[i].wanted;
    printf("# %s, compute capability %d.%d, %.0f GB/s by its clocks\n"
           "# %-5s %9s %9s %10s %8s %8s %8s %8s %8s\n",
           cuda_name(w.dev), cuda_capability(w.dev) / 10,
           cuda_capability(w.dev) % 10, cuda_bandwidth(w.dev) * 1e-9, "", "BxT",
           "ms/step", "tokens/s", "TFLOP/s", "measured", "MFU", "sheet", "MFU");
    for (int i = 0; i < WAYS; i++)
        if ((all || ways[i].wanted) &&
            (cuda_capability(w.dev) >= 80 || i == 0 || i == 3))
            measure_steps(&w, &config, batch, steps, i);
    for (int i = 0; i < WAYS; i++)
        if ((all || ways[i].wanted) &&
            (cuda_capability(w.dev) >= 80 || i == 0 || i == 3))
            measure_ops(&w, &config, batch, i);
    measure_update(&w, &config);
    device_event_close(w.dev, &w.from);
    device_event_close(w.dev, &w.to);
    device_close(&w.dev);
    return 0;
}
