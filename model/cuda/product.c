// product.c - products through cuBLASLt, an algorithm kept for each shape.
//
// cuBLASLt thinks in columns: our row-major out (m, n) = a b is its out' (n, m)
// = b' a', so its A is our b, its B our a, and its bias runs along our rows.
// The first step asks it for an algorithm for every shape; later ones find that
// again. An algorithm that splits k may add up its parts only in fp32 and in a
// fixed order: neither in 16 bits nor in place over the output.

#include "model/cuda/product.h"

#include "base/base.h"
#include "device/cuda.h"
#include "model/cuda/kernels.h"
#include "model/cuda/lt.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORKSPACE = 32 << 20, ALIGNED = 16 };

// These calls fail for reasons of ours, or because there is no memory.
#define LT(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

struct made {
    struct cuda_product_job shape; // without pointers that matter
    bool fused;                    // the epilogue is cuBLASLt's
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, out;
    cublasLtMatmulAlgo_t algo;
    struct made *next;
};

struct cuda_product {
    struct device *dev;
    enum dtype format;
    bool tf32;
    float *partial;
    struct lt lt;
    cublasLtHandle_t handle;
    void *workspace;
    struct made *made;
};

int cuda_product_open(struct cuda_product **out, struct device *d,
                      enum dtype format, bool tf32, float *partial)
{
    struct cuda_product *p = mem_alloc(1, sizeof *p);
    if (!p)
        return -1;
    *p = (struct cuda_product){.dev = d,
                               .format = format,
                               .tf32 = tf32,
                               .partial = partial};
    p->workspace = device_alloc(d, WORKSPACE, 1);
    if (!p->workspace)
        goto close_product;
    if (lt_open(&p->lt))
        goto close_product;
    cublasStatus_t status = p->lt.Create(&p->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        fail("model: cuBLASLt does not start: %s",
             p->lt.GetStatusString(status));
        goto close_product;
    }
    *out = p;
    return 0;

close_product:
    cuda_product_close(&p);
    return -1;
}

static void unmake(const struct lt *lt, struct made *c)
{
    lt->MatmulDescDestroy(c->desc);
    lt->MatrixLayoutDestroy(c->a);
    lt->MatrixLayoutDestroy(c->b);
    lt->MatrixLayoutDestroy(c->out);
}

void cuda_product_close(struct cuda_product **pp)
{
    struct cuda_product *p = *pp;
    if (!p)
        return;
    while (p->made) {
        struct made *c = p->made;
        p->made = c->next;
        unmake(&p->lt, c);
        free(c);
    }
    if (p->handle)
        p->lt.Destroy(p->handle);
    lt_close(&p->lt);
    device_free(p->dev, p->workspace);
    mem_free(p);
    *pp = NULL;
}

// ---- making one

static cudaDataType_t type_of(enum dtype t)
{
    return t == DTYPE_F16    ? CUDA_R_16F
           : t == DTYPE_BF16 ? CUDA_R_16BF
                             : CUDA_R_32F;
}

// A row-major (rows, columns) matrix, `row` numbers between rows, is cuBLASLt's
// (columns, rows).
static cublasLtMatrixLayout_t make_layout(const struct lt *lt, int rows,
                                          int columns, size_t row,
                                          cudaDataType_t type)
{
    cublasLtMatrixLayout_t layout;
    LT(lt->MatrixLayoutCreate(&layout, type, (uint64_t)columns, (uint64_t)rows,
                              (int64_t)(row ? row : (size_t)columns)));
    return layout;
}

static void set(const struct lt *lt, cublasLtMatmulDesc_t desc,
                cublasLtMatmulDescAttributes_t what, const void *value,
                size_t bytes)
{
    LT(lt->MatmulDescSetAttribute(desc, what, value, bytes));
}

static void set_epilogue(const struct lt *lt, struct made *c)
{
    const struct cuda_product_job *j = &c->shape;
    static const cublasLtEpilogue_t names[] = {
        [EPILOGUE_NONE] = CUBLASLT_EPILOGUE_DEFAULT,
        [EPILOGUE_BIAS] = CUBLASLT_EPILOGUE_BIAS,
        [EPILOGUE_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        [EPILOGUE_DGELU] = CUBLASLT_EPILOGUE_DGELU,
    };
    cublasLtEpilogue_t name = names[j->epilogue];
    set(lt, c->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &name, sizeof name);
    if (j->epilogue == EPILOGUE_GELU || j->epilogue == EPILOGUE_DGELU) {
        int64_t ld = j->n;
        set(lt, c->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    }
}

// The pointers of an epilogue, also before an algorithm is asked for: which fit
// depends on how these are aligned.
static void set_pointers(const struct lt *lt, const struct made *c,
                         const struct cuda_product_job *j)
{
    if (!c->fused)
        return;
    if (j->epilogue == EPILOGUE_BIAS || j->epilogue == EPILOGUE_GELU)
        set(lt, c->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &j->bias,
            sizeof j->bias);
    if (j->epilogue == EPILOGUE_GELU || j->epilogue == EPILOGUE_DGELU)
        set(lt, c->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &j->pre,
            sizeof j->pre);
}

static void make_desc(const struct cuda_product *p, struct made *c)
{
    const struct cuda_product_job *j = &c->shape;
    const struct lt *lt = &p->lt;
    cudaDataType_t type = type_of(p->format);
    cublasComputeType_t how = p->format == DTYPE_F32 && p->tf32
                                  ? CUBLAS_COMPUTE_32F_FAST_TF32
                                  : CUBLAS_COMPUTE_32F;
    cublasOperation_t yes = CUBLAS_OP_T, no = CUBLAS_OP_N;
    LT(lt->MatmulDescCreate(&c->desc, how, CUDA_R_32F));
    set(lt, c->desc, CUBLASLT_MATMUL_DESC_TRANSA, j->tb ? &yes : &no,
        sizeof yes);
    set(lt, c->desc, CUBLASLT_MATMUL_DESC_TRANSB, j->ta ? &yes : &no,
        sizeof yes);
    c->a = make_layout(lt, j->tb ? j->n : j->k, j->tb ? j->k : j->n, 0, type);
    c->b = make_layout(lt, j->ta ? j->k : j->m, j->ta ? j->m : j->k, j->a_row,
                       type);
    c->out = make_layout(lt, j->m, j->n, j->out_row,
                         j->out_fp32 ? CUDA_R_32F : type);
    if (c->fused)
        set_epilogue(lt, c);
}

// True if cuBLASLt has an algorithm for c.
static bool find_algo(const struct cuda_product *p, struct made *c)
{
    const struct lt *lt = &p->lt;
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t found;
    size_t workspace = WORKSPACE;
    uint32_t aligned = ALIGNED;
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    int count = 0;
    LT(lt->MatmulPreferenceCreate(&want));
    LT(lt->MatmulPreferenceSetAttribute(
        want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
        sizeof workspace));
    LT(lt->MatmulPreferenceSetAttribute(
        want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
        sizeof reductions));
    for (int i = 0; i < 4; i++)
        LT(lt->MatmulPreferenceSetAttribute(want, alignments[i], &aligned,
                                            sizeof aligned));
    cublasStatus_t status =
        lt->MatmulAlgoGetHeuristic(p->handle, c->desc, c->a, c->b, c->out,
                                   c->out, want, 1, &found, &count);
    lt->MatmulPreferenceDestroy(want);
    if (status != CUBLAS_STATUS_SUCCESS || count == 0 ||
        found.state != CUBLAS_STATUS_SUCCESS)
        return false;
    c->algo = found.algo;
    return true;
}

// A bias gradient is always a kernel of ours. The product it rides on is a
// weight gradient: a small output, whose sum over all tokens must be split for
// the GPU to be busy. An epilogue seldom allows that, and BGRADA is reported to
// be slow (NVIDIA/CUDALibrarySamples, issue 90); neither was measured here.
static bool may_fuse(const struct cuda_product_job *j)
{
    return j->epilogue != EPILOGUE_NONE && j->epilogue != EPILOGUE_BIAS_GRAD;
}

// True if cuBLASLt has an algorithm for c->shape, whose epilogue is its own
// (`fused`) or is to follow.
static bool make(const struct cuda_product *p, struct made *c, bool fused)
{
    void *least = (void *)(uintptr_t)ALIGNED; // other layers' are no worse
    struct cuda_product_job j = c->shape;
    j.bias = j.pre = least;
    c->fused = fused;
    make_desc(p, c);
    set_pointers(&p->lt, c, &j);
    if (find_algo(p, c))
        return true;
    unmake(&p->lt, c);
    return false;
}

static bool same_shape(const struct cuda_product_job *a,
                       const struct cuda_product_job *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->ta == b->ta &&
           a->tb == b->tb && a->a_row == b->a_row && a->out_row == b->out_row &&
           a->out_fp32 == b->out_fp32 && a->add == b->add &&
           a->epilogue == b->epilogue;
}

static const char *describe(const struct cuda_product *p,
                            const struct cuda_product_job *j, char text[128])
{
    static const char *const names[] = {
        [EPILOGUE_NONE] = "none",
        [EPILOGUE_BIAS] = "bias",
        [EPILOGUE_GELU] = "GELU",
        [EPILOGUE_DGELU] = "GELU's gradient",
        [EPILOGUE_BIAS_GRAD] = "bias gradient",
    };
    snprintf(text, 128,
             "(%d, %d) = (%d, %d)%s (%d, %d)%s in %s%s%s, epilogue %s", j->m,
             j->n, j->ta ? j->k : j->m, j->ta ? j->m : j->k, j->ta ? "'" : "",
             j->tb ? j->n : j->k, j->tb ? j->k : j->n, j->tb ? "'" : "",
             p->tf32 ? "tf32" : dtype_name(p->format),
             j->out_fp32 ? " to fp32" : "", j->add ? ", added" : "",
             names[j->epilogue]);
    return text;
}

// Every format has plain products: a GPU without ends the run with this line.
static void stop(const struct cuda_product *p, const struct cuda_product_job *j,
                 cublasStatus_t status)
{
    char text[128];
    log_line("cuBLASLt: product %s: %s", describe(p, j, text),
             p->lt.GetStatusString(status));
    abort(); // as a lost rank, so that the launcher stops the others
}

static struct made *find(struct cuda_product *p,
                         const struct cuda_product_job *j)
{
    for (struct made *c = p->made; c; c = c->next)
        if (same_shape(&c->shape, j))
            return c;
    struct made *c = calloc(1, sizeof *c);
    CHECK(c);
    c->shape = *j;
    if (!(may_fuse(j) && make(p, c, true)) && !make(p, c, false))
        stop(p, j, CUBLAS_STATUS_NOT_SUPPORTED);
    c->next = p->made;
    p->made = c;
    return c;
}

// ---- running one

// What the epilogue would have done.
static void follow(const struct cuda_product *p,
                   const struct cuda_product_job *j)
{
    void *queue = device_handle(p->dev, DEVICE_COMPUTE);
    size_t rows = (size_t)j->m;
    switch (j->epilogue) {
    case EPILOGUE_BIAS:
        cuda_bias(queue, p->format, j->out, j->bias, rows, j->n);
        break;
    case EPILOGUE_GELU:
        cuda_bias_gelu(queue, p->format, j->out, j->pre, j->bias, rows, j->n);
        break;
    case EPILOGUE_DGELU:
        cuda_gelu_backward(queue, p->format, j->out, j->pre, rows * j->n);
        break;
    case EPILOGUE_BIAS_GRAD:
        cuda_sum_rows(queue, p->format, j->bias_grad, j->b, (size_t)j->k, j->n,
                      j->add, p->partial);
        break;
    case EPILOGUE_NONE:
        break;
    }
}

static cublasStatus_t ask(const struct cuda_product *p, const struct made *c,
                          const struct cuda_product_job *j)
{
    const float one = 1, beta = j->add ? 1 : 0;
    set_pointers(&p->lt, c, j);
    return p->lt.Matmul(p->handle, c->desc, &one, j->b, c->a, j->a, c->b, &beta,
                        j->out, c->out, j->out, c->out, &c->algo, p->workspace,
                        WORKSPACE, device_handle(p->dev, DEVICE_COMPUTE));
}

// An algorithm that cuBLASLt named may be refused when it is to run. One with
// an epilogue then gives way to a plain one, for good.
void cuda_product_run(struct cuda_product *p, const struct cuda_product_job *j)
{
    struct made *c = find(p, j);
    cublasStatus_t status = ask(p, c, j);
    if (status != CUBLAS_STATUS_SUCCESS && c->fused) {
        char text[128];
        log_line("cuBLASLt: product %s: %s; the epilogue follows the product",
                 describe(p, j, text), p->lt.GetStatusString(status));
        unmake(&p->lt, c);
        if (!make(p, c, false))
            stop(p, j, CUBLAS_STATUS_NOT_SUPPORTED);
        status = ask(p, c, j);
    }
    if (status != CUBLAS_STATUS_SUCCESS)
        stop(p, j, status);
    if (!c->fused)
        follow(p, j);
}
