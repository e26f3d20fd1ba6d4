// gpu_step.c - estimates the time of a step on a GPU from its FLOP, bytes and
// instructions. It measures nothing.
//
//     products     FLOP / (490 .. 620 TFLOP/s)
//     attention    instructions of a warp / (issued per second * 0.4 .. 0.6)
//     passes       bytes / (2.2 .. 2.8 TB/s)
//
// The figures are for an H100 SXM: 989 TFLOP/s dense in bf16, 132
// multiprocessors that issue 4 instructions each a cycle of 1.755 GHz, 3.35
// TB/s (NVIDIA's data sheet). llm.c trains GPT-2 124M at 468k tokens/s on such
// a GPU: its products then run at 490 TFLOP/s. 620 is an estimate of the rate
// that shapes like these can reach. The shares 0.4 .. 0.6 and the rates of
// passes over memory are estimates, too. tests/sass.py counted the instructions
// of attention in nvcc's code.

#include "lockstep/gpu_step.h"

#include "base/base.h"
#include "config/config.h"

#include <string.h>

static const struct {
    const char *name;
    // Each pair is the best and the worst case.
    double peak, product[2]; // FLOP/s: of the data sheet, and of products
    double issued, share[2]; // warp instructions a second, and usable share
    double bytes[2];         // bytes a second of passes over memory
    double gap[2];           // seconds between two kernels
    struct gpu_link inner;   // to the other GPUs of its host
} gpus[] = {
    {"h100",
     989e12,
     {620e12, 490e12},
     4 * 132 * 1.755e9,
     {0.6, 0.4},
     {2.8e12, 2.2e12},
     {1e-6, 2e-6},
     {{3.4e-6, 450e9},
      "assumed: NVLink of an H100 SXM, 450 GB/s each way by\n           "
      "NVIDIA's data sheet, 3.4 us a message by NCCL's tuning"}},
};

// Instructions of a warp for a tile of 16 rows of its own and 64 of the other
// operand.
enum { FORWARD = 335, DQ = 338, DKV = 507, ROWS = 16, COLUMNS = 64, LINE = 64 };

enum unit { PRODUCT, ISSUED, BYTES, KERNELS };

struct part {
    const char *name;
    enum unit unit;
    double n;
};

enum { PARTS = 12 };

// Returns the number of 16 x 64 tiles on or below one head's diagonal.
static double tiles(int T)
{
    double n = 0;
    for (int row = 0; row < T; row += ROWS)
        n += row / COLUMNS + 1;
    return n;
}

static void list_parts(struct part out[PARTS], const struct model_config *c,
                       int batch)
{
    double N = (double)batch * c->context, C = c->channels, L = c->layers;
    double V = (c->vocab + LINE - 1) / LINE * LINE,
           P = (double)model_nparams(c);
    double rows = N * C * 2; // bytes of a tensor (N, C)
    double heads = (double)batch * c->heads * L * tiles(c->context);
    const struct part parts[PARTS] = {
        {"products of the layers, forward", PRODUCT, 24 * N * C * C * L},
        {"products of the layers, backward", PRODUCT, 48 * N * C * C * L},
        {"products of the classifier", PRODUCT, 6 * N * C * V},
        {"attention, forward", ISSUED, heads * FORWARD},
        {"attention, backward", ISSUED, heads * (DQ + DKV)},
        {"sum of dO * O", BYTES, 2 * rows * L},
        {"LayerNorm and additions, forward", BYTES, 4 * rows * (2 * L + 1)},
        {"LayerNorm, backward", BYTES, 5 * rows * (2 * L + 1)},
        {"gradients of the biases", BYTES, 9 * rows * L},
        {"loss and its gradient", BYTES, 2 * N * V * 2},
        {"embedding, norm and AdamW", BYTES, 4 * rows + 8 * V * C + 34 * P},
        {"gaps between kernels", KERNELS, 28 * L + 20},
    };
    memcpy(out, parts, sizeof parts);
}

static int find(const char *name)
{
    int n = sizeof gpus / sizeof *gpus;
    for (int g = 0; g < n; g++)
        if (!strcmp(gpus[g].name, name))
            return g;
    return fail("device=%s: only an h100 has an estimate; try: device=h100",
                name);
}

int gpu_step_precision(const char *name, struct run *r)
{
    static const char *const formats[] = {"fp32", "bf16", "fp16"};
    if (find(name) < 0)
        return -1;
    if (!config_asked(r, "precision"))
        return config_set(r, "precision", "bf16");
    return r->precision == PRECISION_BF16
               ? 0
               : fail("device=%s: there is no estimate for precision=%s; try: "
                      "precision=bf16, or without device=",
                      name, formats[r->precision]);
}

const struct gpu_link *gpu_step_inner(const char *name)
{
    int g = find(name);
    return g < 0 ? NULL : &gpus[g].inner;
}

int gpu_step(const char *name, const struct model_config *c, int batch,
             double *ms)
{
    int g = find(name);
    if (g < 0)
        return -1;
    struct part parts[PARTS];
    double sum[2] = {0}, tokens = (double)batch * c->context;
    list_parts(parts, c, batch);
    printf("A step of %d x %d tokens in bf16 on one %s, estimated from its "
           "arithmetic and bytes.\nNothing here was measured.\n\n"
           "%-34s %10s %8s %8s\n",
           batch, c->context, name, "part", "amount", "ms, best", "worst");
    for (int i = 0; i < PARTS; i++) {
        static const char *const units[] = {"TFLOP", "G instr.", "GB",
                                            "kernels"};
        static const double scale[] = {1e12, 1e9, 1e9, 1};
        const struct part *p = &parts[i];
        double s[2];
        for (int w = 0; w < 2; w++) {
            const double rates[] = {gpus[g].product[w],
                                    gpus[g].issued * gpus[g].share[w],
                                    gpus[g].bytes[w], 1 / gpus[g].gap[w]};
            s[w] = p->n / rates[p->unit];
            sum[w] += s[w];
        }
        printf("%-34s %6.3g %-8s %5.2f %8.2f\n", p->name, p->n / scale[p->unit],
               units[p->unit], s[0] * 1e3, s[1] * 1e3);
    }
    double flop = 6 * (double)model_nparams(c) +
                  12.0 * c->layers * c->channels * c->context;
    printf("%-34s %15s %5.1f %8.1f\n%-34s %15s %4.3gk %7.3gk\n"
           "%-34s %15s %4.0f%% %7.0f%%\n\n",
           "sum", "", sum[0] * 1e3, sum[1] * 1e3, "tokens/s", "",
           tokens / sum[0] * 1e-3, tokens / sum[1] * 1e-3, "MFU", "",
           100 * flop * tokens / sum[0] / gpus[g].peak,
           100 * flop * tokens / sum[1] / gpus[g].peak);
    *ms = (sum[0] + sum[1]) / 2 * 1e3;
    return 0;
}
