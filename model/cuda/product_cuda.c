// product_cuda.c - products by cuBLASLt, with one algorithm for each shape.
//
// An algorithm is chosen when a shape first comes, and used from then on. It is
// the first that cuBLASLt offers: that one is the same in every run. The caller
// can also ask for `timed` algorithms: then each is timed, with its epilogue or
// with kernels of ours behind it, and the fastest is kept. A timed product runs
// several times and writes the same numbers each time. That would be wrong for
// a product that adds to its output. So such a shape takes the algorithm of the
// same shape that does not add.

#include "model/cuda/product_cuda.h"

#include "base/base.h"
#include "device/cuda.h"
#include "model/cuda/kernels_cuda.h"
#include "model/cuda/routine.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORKSPACE = 32 << 20, TIMES = 3 };

struct cuda_product {
    struct device *dev;
    float *partial;
    struct routine_maker maker;
    void *workspace;
    struct routine *made;
    int timed;  // algorithms to time; 0: take cuBLASLt's first
    int target; // multiprocessors for a product; 0: all
    struct device_event from, to;
};

int cuda_product_open(struct cuda_product **out, struct device *d,
                      enum dtype format, bool tf32, float *partial)
{
    struct cuda_product *p = mem_alloc(1, sizeof *p);
    if (!p)
        return -1;
    *p = (struct cuda_product){.dev = d,
                               .partial = partial,
                               .maker = {.format = format,
                                         .tf32 = tf32,
                                         .workspace = WORKSPACE}};
    p->workspace = device_alloc(d, WORKSPACE, 1);
    if (!p->workspace)
        goto close_product;
    if (lt_open(&p->maker.lt))
        goto close_product;
    cublasStatus_t status = p->maker.lt.Create(&p->maker.handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        fail("model: cuBLASLt does not start: %s",
             p->maker.lt.GetStatusString(status));
        goto close_product;
    }
    *out = p;
    return 0;

close_product:
    cuda_product_close(&p);
    return -1;
}

int cuda_product_time(struct cuda_product *p, int algorithms)
{
    CHECK(algorithms <= CUDA_PRODUCT_ALGORITHMS && !p->timed);
    p->timed = algorithms;
    return algorithms && (device_event_open_timed(p->dev, &p->from) ||
                          device_event_open_timed(p->dev, &p->to))
               ? -1
               : 0;
}

void cuda_product_leave(struct cuda_product *p, int multiprocessors)
{
    int left = cuda_multiprocessors(p->dev) - multiprocessors;
    p->target = multiprocessors == 0 ? 0 : left > 1 ? left : 1;
}

void cuda_product_close(struct cuda_product **pp)
{
    struct cuda_product *p = *pp;
    if (!p)
        return;
    while (p->made) {
        struct routine *r = p->made;
        p->made = r->next;
        routine_destroy(&p->maker, r);
        free(r);
    }
    device_event_close(p->dev, &p->from);
    device_event_close(p->dev, &p->to);
    if (p->maker.handle)
        p->maker.lt.Destroy(p->maker.handle);
    lt_close(&p->maker.lt);
    device_free(p->dev, p->workspace);
    mem_free(p);
    *pp = NULL;
}

// ---- running one

// Kernels of ours do the work of an epilogue.
static void follow(const struct cuda_product *p, const struct product_job *j)
{
    void *queue = device_handle(p->dev, DEVICE_COMPUTE);
    enum dtype format = p->maker.format;
    size_t rows = (size_t)j->m;
    switch (j->epilogue) {
    case EPILOGUE_BIAS:
        cuda_bias(queue, format, j->out, NULL, j->bias, rows, j->n);
        break;
    case EPILOGUE_GELU:
        cuda_bias(queue, format, j->out, j->pre, j->bias, rows, j->n);
        break;
    case EPILOGUE_DGELU:
        cuda_gelu_backward(queue, format, j->out, j->pre, rows * j->n);
        break;
    case EPILOGUE_BIAS_GRAD:
        cuda_sum_rows(queue, format, j->bias_grad, j->b, (size_t)j->k, j->n,
                      j->add, p->partial);
        break;
    case EPILOGUE_NONE:
        break;
    }
}

static cublasStatus_t ask(const struct cuda_product *p, const struct routine *r,
                          const struct product_job *j)
{
    const float one = 1, beta = j->add ? 1 : 0;
    routine_point(&p->maker, r, j);
    cublasStatus_t status =
        p->maker.lt.Matmul(p->maker.handle, r->desc, &one, j->b, r->a, j->a,
                           r->b, &beta, j->out, r->out, j->out, r->out,
                           &r->algo, p->workspace, WORKSPACE,
                           device_handle(p->dev, DEVICE_COMPUTE));
    if (status == CUBLAS_STATUS_SUCCESS && !r->fused)
        follow(p, j);
    return status;
}

// ---- choosing one

static bool same_shape(const struct product_job *a, const struct product_job *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->ta == b->ta &&
           a->tb == b->tb && a->a_row == b->a_row && a->out_row == b->out_row &&
           a->out_fp32 == b->out_fp32 && a->epilogue == b->epilogue;
}

static const char *name_of(const struct cuda_product *p,
                           const struct product_job *j, char text[128])
{
    static const char *const names[] = {
        [EPILOGUE_NONE] = "none",
        [EPILOGUE_BIAS] = "bias",
        [EPILOGUE_GELU] = "GELU",
        [EPILOGUE_DGELU] = "GELU's gradient",
        [EPILOGUE_BIAS_GRAD] = "bias gradient",
    };
    const struct routine_maker *m = &p->maker;
    snprintf(text, 128,
             "(%d, %d) = (%d, %d)%s (%d, %d)%s in %s%s%s, epilogue %s", j->m,
             j->n, j->ta ? j->k : j->m, j->ta ? j->m : j->k, j->ta ? "'" : "",
             j->tb ? j->n : j->k, j->tb ? j->k : j->n, j->tb ? "'" : "",
             m->tf32 ? "tf32" : dtype_name(m->format),
             j->out_fp32 ? " to fp32" : "", j->add ? ", added" : "",
             names[j->epilogue]);
    return text;
}

// Every format has plain products. If a GPU has none, the run ends with this
// line.
static void stop(const struct cuda_product *p, const struct product_job *j,
                 cublasStatus_t status)
{
    char text[128];
    log_line("cuBLASLt: product %s: %s", name_of(p, j, text),
             p->maker.lt.GetStatusString(status));
    abort(); // so the launcher sees a lost rank and stops the others
}

// Whether a product may have cuBLASLt's epilogue. GELU and its gradient in fp32
// have none: cuBLASLt computes tanh() by the GPU's approximation. With CUDA
// 13.1's library on an H200 its GELU was off by 4e-5 where products are exact
// to 4e-6 (`ctest -R cuda_products`). In 16 bits and TF32 rounding hides this.
//
// A bias gradient is a kernel of ours, unless cuBLASLt's was timed and is
// faster. cuBLASLt's is an epilogue of the product for the weight gradient.
// That product has a small output, and its sum over all tokens must be split to
// keep the GPU busy. The epilogue overwrites its output, and cannot add to it:
// so with accum= a first micro-batch would not have the bits of the others. On
// an H200 it was the faster way for all weights of a layer (docs/gpu.md).
static bool may_fuse(const struct cuda_product *p, const struct product_job *j)
{
    bool exact = p->maker.format == DTYPE_F32 && !p->maker.tf32;
    switch (j->epilogue) {
    case EPILOGUE_NONE:
        return false;
    case EPILOGUE_BIAS:
        return true;
    case EPILOGUE_GELU:
    case EPILOGUE_DGELU:
        return !exact;
    case EPILOGUE_BIAS_GRAD:
        return p->timed && !j->add;
    }
    return false;
}

// Returns the time, in ns, of a product as r describes it, with the kernels
// that follow it; 0 if cuBLASLt refuses to run it. One run comes before the
// clock starts, because the first run also loads the kernels.
static uint64_t time_of(const struct cuda_product *p, const struct routine *r,
                        const struct product_job *j)
{
    struct device *d = p->dev;
    struct device_event from = p->from, to = p->to;
    if (ask(p, r, j) != CUBLAS_STATUS_SUCCESS)
        return 0;
    device_record(d, &from, DEVICE_COMPUTE);
    for (int i = 0; i < TIMES; i++)
        if (ask(p, r, j) != CUBLAS_STATUS_SUCCESS)
            return 0;
    device_record(d, &to, DEVICE_COMPUTE);
    device_wait(d, &to);
    return device_between(d, &from, &to) / TIMES + 1; // never 0
}

// Finds the fastest of the algorithms that cuBLASLt offers. False if none runs.
static bool find_fastest(const struct cuda_product *p, struct routine *r,
                         const struct product_job *j)
{
    struct routine best = {.fused = false};
    uint64_t least = 0, most = 0, plain = 0;
    int ran = 0;
    for (int fused = may_fuse(p, j); fused >= 0; fused--) {
        cublasLtMatmulAlgo_t algos[CUDA_PRODUCT_ALGORITHMS];
        int n = routine_make(&p->maker, r, fused, algos, p->timed);
        for (int i = 0; i < n; i++) {
            r->algo = algos[i];
            uint64_t ns = time_of(p, r, j);
            if (!ns)
                continue;
            if (!ran++ || ns < least)
                best = *r, least = ns;
            if (!fused && (!plain || ns < plain))
                r->plain = r->algo, r->has_plain = true, plain = ns;
            most = ns > most ? ns : most;
        }
        if (n)
            routine_destroy(&p->maker, r);
    }
    if (!ran || !routine_make(&p->maker, r, best.fused, &r->algo, 1))
        return false;
    char text[128];
    r->algo = best.algo;
    log_line("cuBLASLt: product %s: %.1f us by the fastest of %d algorithms%s, "
             "%.1f by the slowest",
             name_of(p, j, text), (double)least * 1e-3, ran,
             best.fused && j->epilogue == EPILOGUE_BIAS_GRAD
                 ? " (its own epilogue)"
                 : "",
             (double)most * 1e-3);
    return true;
}

// cuBLASLt's own first choice.
static bool find_first(const struct cuda_product *p, struct routine *r,
                       bool fused)
{
    return routine_make(&p->maker, r, fused, &r->algo, 1) > 0;
}

static struct routine *look_up(const struct cuda_product *p,
                               const struct product_job *j, bool add)
{
    struct routine *r = p->made;
    while (r && !(r->shape.add == add && r->target == p->target &&
                  same_shape(&r->shape, j)))
        r = r->next;
    return r;
}

static struct routine *find(struct cuda_product *p, const struct product_job *j)
{
    struct routine *r = look_up(p, j, j->add);
    if (r)
        return r;
    r = calloc(1, sizeof *r);
    CHECK(r);
    *r = (struct routine){.shape = *j, .target = p->target, .next = p->made};
    const struct routine *same = j->add ? look_up(p, j, false) : NULL;
    if (!(p->timed && !j->add && find_fastest(p, r, j)) &&
        !(may_fuse(p, j) && find_first(p, r, true)) && !find_first(p, r, false))
        stop(p, j, CUBLAS_STATUS_NOT_SUPPORTED);
    if (same && same->has_plain)
        r->algo = same->plain;
    p->made = r;
    return r;
}

// cuBLASLt may offer an algorithm and then refuse to run it. If that one has an
// epilogue, a plain one replaces it for the rest of the run.
void cuda_product_run(struct cuda_product *p, const struct product_job *j)
{
    struct routine *r = find(p, j);
    cublasStatus_t status = ask(p, r, j);
    if (status != CUBLAS_STATUS_SUCCESS && r->fused) {
        char text[128];
        log_line("cuBLASLt: product %s: %s; the epilogue follows the product",
                 name_of(p, j, text), p->maker.lt.GetStatusString(status));
        routine_destroy(&p->maker, r);
        if (!find_first(p, r, false))
            stop(p, j, CUBLAS_STATUS_NOT_SUPPORTED);
        status = ask(p, r, j);
    }
    if (status != CUBLAS_STATUS_SUCCESS)
        stop(p, j, status);
}
