// peak.c - the highest rate of a GPU's products: measured, and by its data
// sheet.

#include "model/ops.h"

#include "base/base.h"
#include "base/rng.h"
#include "device/cuda.h"
#include "model/cuda/peak.h"
#include "model/cuda/product_cuda.h"

#include <string.h>

enum { SMALLEST = 256, LARGEST = 8192, ROUNDS = 10, DRAWN = 1 << 16 };

static const double long_s = 1e-3; // a product of this length shows the rate

// ---- the data sheet

enum { FP32, TF32, BF16, FP16, FORMATS };

// Dense TFLOP/s with sums in fp32. A sheet's number for tensor cores "with
// sparsity" is halved. The numbers are from NVIDIA's data sheets "H200 Tensor
// Core GPU", "H100 Tensor Core GPU" (SXM, NVL, PCIe), "A100 Tensor Core GPU",
// "L40S", "L4 Tensor Core GPU", "A10 Tensor Core GPU", "T4 70W Tensor Core GPU"
// and "V100 Tensor Core GPU". The first row whose name is in the device's name
// counts.
static const struct sheet {
    const char *name;
    double tflops[FORMATS];
} sheets[] = {
    {"H200 NVL", {60, 417.5, 835.5, 835.5}},
    {"H200", {67, 494.5, 989.5, 989.5}},
    {"H100 NVL", {60, 417.5, 835.5, 835.5}},
    {"H100 PCIe", {51, 378, 756.5, 756.5}},
    {"H100", {67, 494.5, 989.5, 989.5}},
    {"A100", {19.5, 156, 312, 312}},
    {"L40S", {91.6, 183, 362, 362}},
    {"NVIDIA L4", {30.3, 60, 121, 121}},
    {"NVIDIA A10", {31.2, 62.5, 125, 125}},
    {"T4", {8.1, 0, 0, 65}},
    {"V100-SXM2", {15.7, 0, 0, 125}},
    {"V100-PCIE", {14, 0, 0, 112}},
};

// Whether the device's name contains `name` as whole words. "NVIDIA A100" does
// not contain "NVIDIA A10".
static bool is_of(const char *device, const char *name)
{
    const char *at = strstr(device, name);
    return at && (at[strlen(name)] == '\0' || strchr(" -", at[strlen(name)]));
}

double cuda_sheet(const char *device, enum dtype format, bool tf32)
{
    int f = format == DTYPE_BF16 ? BF16 : format == DTYPE_F16 ? FP16 : FP32;
    if (f == FP32 && tf32)
        f = TF32;
    for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++)
        if (is_of(device, sheets[i].name))
            return sheets[i].tflops[f] * 1e12;
    return 0;
}

// ---- measured

// What a measurement of square products needs.
struct square {
    struct device *dev;
    struct cuda_product *product;
    enum dtype format;
    struct device_event from, to;
};

int cuda_draw(struct device *d, enum dtype format, void *to, size_t n)
{
    static float drawn[DRAWN];
    size_t size = dtype_bytes(format), have = n < DRAWN ? n : DRAWN;
    for (size_t i = 0; i < have; i++)
        drawn[i] = (float)rng_normal(1, i);
    float *scratch = device_alloc(d, have, sizeof *scratch);
    if (!scratch)
        return -1;
    device_copy(d, scratch, drawn, have * sizeof *scratch);
    device_cast_on(d, DEVICE_COMPUTE, to, format, scratch, DTYPE_F32, 1, have);
    for (size_t more; have < n; have += more) {
        more = have < n - have ? have : n - have;
        device_copy_on(d, DEVICE_COMPUTE, (char *)to + have * size, to,
                       more * size);
    }
    device_free(d, scratch); // waits for the cast
    return 0;
}

static void run(struct square *s, const struct product_job *j, double *best)
{
    for (int i = -1; i < ROUNDS; i++) { // the first also chooses an algorithm
        device_record(s->dev, &s->from, DEVICE_COMPUTE);
        cuda_product_run(s->product, j);
        device_record(s->dev, &s->to, DEVICE_COMPUTE);
        device_wait(s->dev, &s->to);
        double t = (double)device_between(s->dev, &s->from, &s->to) * 1e-9;
        if (i >= 0 && (i == 0 || t < *best))
            *best = t;
    }
}

// *best = seconds of a product of two matrices of side^2 numbers. They are
// random, because with zeros a GPU draws less power and raises its clock.
// Returns 0, or -1 after fail().
static int time_of(struct square *s, int side, double *best)
{
    size_t n = (size_t)side * (size_t)side, size = dtype_bytes(s->format);
    char *m[3];
    int rc = 0;
    for (int i = 0; i < 3; i++) {
        m[i] = rc ? NULL : device_alloc(s->dev, n, size);
        rc |= m[i] ? 0 : -1;
    }
    struct product_job j = {
        .m = side, .n = side, .k = side, .a = m[0], .b = m[1], .out = m[2]};
    for (int i = 0; !rc && i < 2; i++)
        rc = cuda_draw(s->dev, s->format, m[i], n);
    if (!rc)
        run(s, &j, best);
    for (int i = 0; i < 3; i++)
        device_free(s->dev, m[i]);
    return rc;
}

// *best = the best FLOP/s of products of growing size. Stops at a product that
// takes long_s, or that does not fit the memory.
static int measure(struct square *s, double *best)
{
    double seconds = 0;
    *best = 0;
    for (int side = SMALLEST; side <= LARGEST && seconds < long_s; side *= 2) {
        if (time_of(s, side, &seconds))
            return *best > 0 ? 0 : -1;
        double rate = 2.0 * side * side * side / seconds;
        *best = rate > *best ? rate : *best;
    }
    return 0;
}

int cuda_peak(const struct model_job *job, struct model_peak *out)
{
    bool tf32 = job->tf32 && cuda_capability(job->dev) >= 80;
    struct square s = {.dev = job->dev, .format = job->precision};
    struct model_peak p = {.device = cuda_name(job->dev),
                           .sheet = cuda_sheet(cuda_name(job->dev),
                                               job->precision, tf32)};
    int rc = device_event_open_timed(s.dev, &s.from) ||
             device_event_open_timed(s.dev, &s.to) ||
             cuda_product_open(&s.product, s.dev, s.format, tf32, NULL) ||
             measure(&s, &p.measured);
    cuda_product_close(&s.product);
    device_event_close(s.dev, &s.from);
    device_event_close(s.dev, &s.to);
    if (rc)
        return -1;
    *out = p;
    return 0;
}
