// layer_cuda.c - the speed of a training step of GPT-2 on a GPU, compared with
// the peak of the GPU.
//
//     layer_perf device=cuda [model=gpt2] [batch=32] [fp32|tf32|bf16|fp16 ...]
//                            [steps=20] [tune=N] [attention=cudnn] [detail=0]
//                            [peers=0]
//
// Each format has a row with tokens/s and FLOP/s. FLOP/s are given as a share
// of two peaks: that of a matrix product measured in the same run, and that of
// the data sheet (model/cuda/peak.c). The time of a step is the time between
// the ends of two consecutive steps, so it includes the time in which the GPU
// waits for the host. Times are medians. Then come single operations with their
// lower bounds (gpu_ops.c), and PyTorch on the same GPU
// (tests/oracle/gpt2_torch_gpu.py).

#include "bench/layer_cuda.h"

#include "base/base.h"
#include "base/median.h"
#include "bench/gpu_ops.h"
#include "bench/peer.h"
#include "bench/workload.h"
#include "device/cuda.h"
#include "model/cuda/dnn_attention.h"
#include "model/cuda/product_cuda.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { WARM = 5, MOST_STEPS = 1000, SKIPPED = 77 };

static const struct way {
    const char *name;
    enum dtype format;
    bool tf32;
    int capability; // the lowest compute capability that has it
} ways[] = {{"fp32", DTYPE_F32, false, 0},
            {"tf32", DTYPE_F32, true, 80},
            {"bf16", DTYPE_BF16, false, 80},
            {"fp16", DTYPE_F16, false, 0}};

enum { WAYS = sizeof ways / sizeof *ways };

struct plan {
    struct model_config config;
    int batch, steps, tune;
    bool wanted[WAYS], cudnn, detail, peers;
};

// ---- whole steps

// The median time between the ends of two steps.
static double time_steps(struct workload *s, int steps)
{
    static struct device_event ends[MOST_STEPS + 1];
    static double t[MOST_STEPS];
    for (int i = 0; i <= steps; i++)
        if (device_event_open_timed(s->dev, &ends[i]))
            die("%s", fail_message());
    for (int i = -WARM; i <= steps; i++) {
        workload_step(s);
        if (i >= 0)
            device_record(s->dev, &ends[i], DEVICE_COMPUTE);
    }
    device_finish(s->dev);
    for (int i = 0; i < steps; i++)
        t[i] = (double)device_between(s->dev, &ends[i], &ends[i + 1]) * 1e-9;
    for (int i = 0; i <= steps; i++)
        device_event_close(s->dev, &ends[i]);
    return median(t, steps);
}

static void print_row(const struct workload_case *c, const struct model_peak *p,
                      double seconds)
{
    double tokens = (double)c->batch * c->tokens / seconds;
    double flops = tokens * model_flop(&c->config, c->tokens);
    printf("%-5s %4d x %4d %9.2f %10.0f %8.1f %8.1f %7.1f%%", c->name, c->batch,
           c->tokens, seconds * 1e3, tokens, flops * 1e-12, p->measured * 1e-12,
           100 * flops / p->measured);
    if (p->sheet > 0)
        printf(" %8.1f %7.1f%%", p->sheet * 1e-12, 100 * flops / p->sheet);
    printf("\n");
    fflush(stdout);
}

// Opens cuDNN's attention for one sequence and closes it. A cuDNN that is
// missing, or that refuses this GPU or the model's heads, ends the program
// here. measure() would take that for a lack of memory.
static void try_cudnn(struct device *d, const struct workload_case *c)
{
    struct dnn_attention *dnn = NULL;
    struct attention a = {.B = 1,
                          .T = c->tokens,
                          .C = c->config.channels,
                          .NH = c->config.heads,
                          .mask = {.keep = 1}};
    if (dnn_attention_open(&dnn, d, c->precision, &a, true))
        die("%s", fail_message());
    dnn_attention_close(&dnn);
}

// Halves the case's batch until it fits into the GPU's memory. Measures the
// time of a step and the GPU's peak.
static void measure(struct workload_case *c, const struct plan *plan,
                    struct model_peak *peak)
{
    struct workload s;
    while (workload_open(&s, c)) {
        workload_close(&s);
        if (c->batch == 1)
            die("%s", fail_message());
        c->batch /= 2;
    }
    double seconds = time_steps(&s, plan->steps);
    struct model_job job = {.dev = s.dev,
                            .precision = c->precision,
                            .tf32 = c->tf32};
    if (model_peak(&job, peak))
        die("%s", fail_message());
    print_row(c, peak, seconds);
    workload_close(&s);
}

// ---- the arguments

static int read_word(struct plan *p, const char *word)
{
    for (int i = 0; i < WAYS; i++)
        if (!strcmp(word, ways[i].name)) {
            p->wanted[i] = true;
            return 0;
        }
    if (!strcmp(word, "detail=0"))
        p->detail = false;
    else if (!strcmp(word, "attention=cudnn"))
        p->cudnn = true;
    else if (!strcmp(word, "peers=0"))
        p->peers = false;
    else if (!strncmp(word, "model=", 6))
        return model_preset(word + 6, &p->config);
    else if (sscanf(word, "batch=%d", &p->batch) != 1 &&
             sscanf(word, "steps=%d", &p->steps) != 1 &&
             sscanf(word, "tune=%d", &p->tune) != 1)
        return fail(
            "%s: unknown; try: model=NAME, batch=N, steps=N, tune=N, "
            "attention=cudnn, fp32, tf32, bf16, fp16, detail=0, peers=0",
            word);
    if (p->tune < 0 || p->tune > CUDA_PRODUCT_ALGORITHMS)
        return fail("%s; try: 0 to %d algorithms", word,
                    CUDA_PRODUCT_ALGORITHMS);
    if (p->batch < 1 || p->steps < 1 || p->steps > MOST_STEPS)
        return fail("%s; try: a batch of 1 or more, 1 to %d steps", word,
                    MOST_STEPS);
    return 0;
}

static int parse(struct plan *p, int nwords, char **words)
{
    bool any = false;
    *p = (struct plan){.batch = 32, .steps = 20, .detail = true, .peers = true};
    if (model_preset("gpt2", &p->config))
        return -1;
    for (int i = 0; i < nwords; i++)
        if (read_word(p, words[i]))
            return -1;
    for (int i = 0; i < WAYS; i++)
        any = any || p->wanted[i];
    for (int i = 0; i < WAYS && !any; i++)
        p->wanted[i] = true;
    if (p->config.vocab == 0)
        p->config.vocab = 256;
    return 0;
}

int layer_cuda(int nwords, char **words)
{
    struct plan plan;
    struct device *d = NULL;
    if (parse(&plan, nwords, words))
        die("%s", fail_message());
    if (device_open(&d, "cuda")) {
        printf("skipped: %s\n", fail_message());
        return SKIPPED;
    }
    struct workload_case c = {.config = plan.config,
                              .batch = plan.batch,
                              .tokens = plan.config.context,
                              .threads = omp_get_num_procs(),
                              .device = "cuda",
                              .tune = plan.tune,
                              .cudnn = plan.cudnn};
    struct model_peak peaks[WAYS];
    char more[64];
    printf("# %s, compute capability %d.%d, %.0f GB/s by its clocks\n"
           "# %-5s %9s %9s %10s %8s %8s %8s %8s %8s\n",
           cuda_name(d), cuda_capability(d) / 10, cuda_capability(d) % 10,
           cuda_bandwidth(d) * 1e-9, "", "BxT", "ms/step", "tokens/s",
           "TFLOP/s", "measured", "MFU", "sheet", "MFU");
    for (int detail = 0; detail <= plan.detail; detail++)
        for (int i = 0; i < WAYS; i++) {
            if (!plan.wanted[i] || cuda_capability(d) < ways[i].capability ||
                (plan.cudnn && ways[i].format == DTYPE_F32))
                continue;
            c.name = ways[i].name;
            c.precision = ways[i].format;
            c.tf32 = ways[i].tf32;
            if (!detail && plan.cudnn)
                try_cudnn(d, &c);
            if (!detail)
                measure(&c, &plan, &peaks[i]);
            else if (gpu_ops(d, &c, peaks[i].measured))
                die("%s", fail_message());
        }
    snprintf(more, sizeof more, "steps=%d", plan.steps);
    if (plan.peers)
        peer_step(&c, NULL, "gpt2_torch_gpu.py", more);
    device_close(&d);
    return 0;
}
