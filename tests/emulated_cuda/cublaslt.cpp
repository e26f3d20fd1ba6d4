// cublaslt.cpp - cuBLASLt by its manual: D (m, n) = A B, column-major.
//
//     BIAS            D = A B + bias                bias: m numbers of D's type
//     GELU_AUX_BIAS   aux = A B + bias; D = gelu(aux)  gelu by a rough tanh
//     DGELU           D = A B * gelu'(aux)
//     BGRADA          D = A B; bias = sums of op(A)'s rows
//
// EMULATED_CUBLASLT selects its behaviour. plain: it only has algorithms for
// products without epilogues, of matrices whose columns are a multiple of 16
// bytes. refuses: it offers an algorithm for epilogues, but refuses to run it.
// broken: it refuses to run plain products, too. clocked: it offers eight
// algorithms, each with its own time, and refuses to run the one that would be
// the fastest. oneDNN computes the products, in fp32. If the preference allows
// it, k is split and the two parts are added in D's type. The manual's rules
// for pointers and leading dimensions are checked; the algorithms of a real
// cuBLASLt are not known here.

#include <cublasLt.h>

#include "base/half.h"
#include "tests/emulated_cuda/address.h"
#include "tests/emulated_cuda/block.h"
#include "tests/emulated_cuda/runtime.h"

#include <dnnl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

struct emulated_lt {
    bool plain, refuses, broken, clocked;
    int bgrad_more; // minutes
};

struct emulated_layout {
    cudaDataType_t type;
    int64_t rows, columns, ld;
};

struct emulated_desc {
    cublasComputeType_t compute;
    cublasOperation_t transa, transb;
    cublasLtEpilogue_t epilogue;
    void *bias, *aux;
    int64_t aux_ld;
    int32_t target; // multiprocessors; 0: all
};

struct emulated_preference {
    uint64_t workspace;
    uint32_t reductions, alignment[4];
};

typedef struct emulated_layout layout;

// The data of an algorithm: the alignments of A, B, C, D, bias and aux, at most
// LINE; whether parts of k are added in D's type; and its index in the offer.
enum { BIAS = 4, AUX, SPLITS, NTH, LINE = 256 };

// clocked: the times are minutes, so long that the emulation's own time does
// not matter. A product without an epilogue takes PLAIN_MORE minutes more. One
// with a bias gradient takes 100 more, or with clocked_fused none.
static const int minutes[] = {50, 40, 70, 20, 10, 30, 60, 80};
enum {
    OFFERED = sizeof minutes / sizeof *minutes,
    REFUSED = 4,
    PLAIN_MORE = 5
};
static const uint64_t MINUTE_NS = (uint64_t)60 * 1000000000;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    const char *set = getenv("EMULATED_CUBLASLT"), *how = set ? set : "";
    *handle =
        new emulated_lt{!strcmp(how, "plain"), !strcmp(how, "refuses"),
                        !strcmp(how, "broken"), !strncmp(how, "clocked", 7),
                        strcmp(how, "clocked_fused") ? 100 : 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS         ? "success"
           : status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported"
                                                   : "invalid value";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                          cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
    *out = new emulated_layout{type, (int64_t)rows, (int64_t)columns, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                        cublasComputeType_t compute,
                                        cudaDataType_t)
{
    *desc = new emulated_desc{compute,     CUBLAS_OP_N,
                              CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT,
                              nullptr,     nullptr,
                              0,           0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
static cublasStatus_t put(T *to, const void *value, size_t bytes)
{
    if (bytes != sizeof *to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                               cublasLtMatmulDescAttributes_t what,
                               const void *value, size_t bytes)
{
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return put(&d->transa, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return put(&d->transb, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return put(&d->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return put(&d->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return put(&d->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return put(&d->aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
        return put(&d->target, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new emulated_preference();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                     cublasLtMatmulPreferenceAttributes_t what,
                                     const void *value, size_t bytes)
{
    switch (what) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return put(&p->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return put(&p->reductions, value, bytes);
    default:
        return put(
            &p->alignment[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
            value, bytes);
    }
}

// ---- the manual's rules

static size_t size_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

static bool has_aux(const struct emulated_desc *d)
{
    return d->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           d->epilogue == CUBLASLT_EPILOGUE_DGELU;
}

static bool fits(const struct emulated_desc *d, const layout *a,
                 const layout *b, const layout *out)
{
    bool ta = d->transa == CUBLAS_OP_T, tb = d->transb == CUBLAS_OP_T;
    int64_t m = out->rows, n = out->columns, k = ta ? a->rows : a->columns;
    const layout *all[] = {a, b, out};
    for (const layout *l : all)
        if (l->rows < 1 || l->columns < 1 || l->ld < l->rows)
            return false;
    if (has_aux(d) && (d->aux_ld % 8 || d->aux_ld < m))
        return false;
    return (ta ? a->columns : a->rows) == m &&
           (tb ? b->rows : b->columns) == n &&
           (tb ? b->columns : b->rows) == k && a->type == b->type;
}

static bool in_packs(const layout *l)
{
    return (size_t)l->rows * size_of(l->type) % 16 == 0;
}

static uint64_t alignment_of(const void *p)
{
    uint64_t at = (uint64_t)(uintptr_t)p | LINE;
    return at & -at;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t preference,
    int wanted, cublasLtMatmulHeuristicResult_t *results, int *found)
{
    *found = 0;
    if (!fits(d, a, b, out) || c != out)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->plain && (d->epilogue != CUBLASLT_EPILOGUE_DEFAULT ||
                          !in_packs(a) || !in_packs(b) || !in_packs(out)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (d->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    int most = handle->clocked ? OFFERED : 1;
    for (; *found < wanted && *found < most; ++*found) {
        uint64_t *algo = results[*found].algo.data;
        results[*found] = {};
        for (int i = 0; i < 4; i++)
            algo[i] = preference->alignment[i];
        algo[BIAS] = alignment_of(d->bias);
        algo[AUX] = alignment_of(d->aux);
        algo[SPLITS] =
            preference->reductions & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
        algo[NTH] = (uint64_t)*found;
    }
    return CUBLAS_STATUS_SUCCESS;
}

// ---- products

static float load(const void *p, cudaDataType_t type, int64_t i)
{
    return type == CUDA_R_16F    ? f16_to_float(((const uint16_t *)p)[i])
           : type == CUDA_R_16BF ? bf16_to_float(((const uint16_t *)p)[i])
                                 : ((const float *)p)[i];
}

static void store(void *p, cudaDataType_t type, int64_t i, float x)
{
    if (type == CUDA_R_16F)
        ((uint16_t *)p)[i] = f16_from_float(x);
    else if (type == CUDA_R_16BF)
        ((uint16_t *)p)[i] = bf16_from_float(x);
    else
        ((float *)p)[i] = x;
}

static float rounded(float x, cudaDataType_t type)
{
    float there;
    store(&there, type, 0, x);
    return load(&there, type, 0);
}

static void touch(const char *what, const void *p, const layout &l)
{
    const char *column = (const char *)p;
    for (int64_t j = 0; j < l.columns;
         j++, column += l.ld * (int64_t)size_of(l.type))
        if (emulated::forbidden(column, (size_t)l.rows * size_of(l.type)))
            emulated::stop(
                "cuBLASLt: column %lld of %s (%lld, %lld) is out of bounds",
                (long long)j, what, (long long)l.rows, (long long)l.columns);
}

// The matrix in fp32, with contiguous columns.
static std::vector<float> widen(const void *p, const layout &l, bool tf32)
{
    std::vector<float> wide((size_t)(l.rows * l.columns));
    for (int64_t j = 0; j < l.columns; j++)
        for (int64_t i = 0; i < l.rows; i++) {
            float x = load(p, l.type, j * l.ld + i);
            if (tf32 && isfinite(x))
                x = bits_float((float_bits(x) + 0x1000) & 0xffffe000);
            wide[(size_t)(j * l.rows + i)] = x;
        }
    return wide;
}

// x with 11 significant bits
static double round_11(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(mantissa, 11)), exponent - 11);
}

// NVIDIA's GELU computes tanh by tanh.approx, whose relative error is up to
// 2^-11. Its gradient is not known to.
static double gelu(double x, double *slope)
{
    double root = sqrt(2 / M_PI);
    double t = tanh(root * (x + 0.044715 * x * x * x));
    *slope = 0.5 * (1 + t) +
             0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
    return 0.5 * x * (1 + round_11(t));
}

// One number of D, after the epilogue.
static float finish(const struct emulated_desc &d, cudaDataType_t type,
                    int64_t i, int64_t j, float x)
{
    double slope;
    if (d.epilogue & CUBLASLT_EPILOGUE_BIAS)
        x += load(d.bias, type, i);
    if (d.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
        store(d.aux, type, j * d.aux_ld + i, x);
        x = (float)gelu(x, &slope);
    }
    if (d.epilogue == CUBLASLT_EPILOGUE_DGELU) {
        gelu(load(d.aux, type, j * d.aux_ld + i), &slope);
        x *= (float)slope;
    }
    return x;
}

struct product {
    struct emulated_desc desc;
    layout la, lb, out;
    const void *a, *b;
    void *d;
    float alpha, beta;
    bool splits;
    int nth;
    uint64_t ns; // the time that it takes
};

// sum (m, n) = columns [from, to) of op(A) times rows [from, to) of op(B).
// oneDNN is row-major: there it is sum' (n, m) = B' A'.
static void multiply(const product &p, float *sum, const float *a,
                     const float *b, int64_t from, int64_t to)
{
    bool ta = p.desc.transa == CUBLAS_OP_T, tb = p.desc.transb == CUBLAS_OP_T;
    dnnl_sgemm(tb ? 'T' : 'N', ta ? 'T' : 'N', p.out.columns, p.out.rows,
               to - from, p.alpha, b + from * (tb ? p.lb.rows : 1), p.lb.rows,
               a + from * (ta ? 1 : p.la.rows), p.la.rows, 0, sum, p.out.rows);
}

// bias = the sums of op(A)'s rows, which run over k.
static void sum_rows(const product &p, const float *a, int64_t m, int64_t k)
{
    bool ta = p.desc.transa == CUBLAS_OP_T;
    for (int64_t i = 0; i < m; i++) {
        float sum = 0;
        for (int64_t x = 0; x < k; x++)
            sum += a[ta ? i * k + x : x * m + i];
        store(p.desc.bias, p.out.type, i, sum);
    }
}

static void run(const product &p)
{
    bool ta = p.desc.transa == CUBLAS_OP_T;
    bool tf32 = p.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    int64_t m = p.out.rows, n = p.out.columns;
    int64_t k = ta ? p.la.rows : p.la.columns;
    touch("A", p.a, p.la);
    touch("B", p.b, p.lb);
    touch("D", p.d, p.out);
    if (has_aux(&p.desc))
        touch("aux", p.desc.aux, {p.out.type, m, n, p.desc.aux_ld});
    std::vector<float> a = widen(p.a, p.la, tf32), b = widen(p.b, p.lb, tf32);
    std::vector<float> sum((size_t)(m * n));
    multiply(p, sum.data(), a.data(), b.data(), 0, p.splits ? k / 2 : k);
    if (p.splits) {
        std::vector<float> rest((size_t)(m * n));
        multiply(p, rest.data(), a.data(), b.data(), k / 2, k);
        for (size_t i = 0; i < sum.size(); i++)
            sum[i] = rounded(sum[i], p.out.type) + rounded(rest[i], p.out.type);
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            float x = sum[(size_t)(j * m + i)];
            int64_t at = j * p.out.ld + i;
            if (p.beta != 0)
                x += p.beta * load(p.d, p.out.type, at);
            store(p.d, p.out.type, at, finish(p.desc, p.out.type, i, j, x));
        }
    if (p.desc.epilogue == CUBLASLT_EPILOGUE_BGRADA)
        sum_rows(p, a.data(), m, k);
    emulated::product(p.nth, p.desc.epilogue != CUBLASLT_EPILOGUE_DEFAULT,
                      p.desc.target);
    emulated::pass(p.ns);
}

static uint64_t time_of(cublasLtHandle_t handle, int nth, cublasLtEpilogue_t e)
{
    int more = e == CUBLASLT_EPILOGUE_DEFAULT  ? PLAIN_MORE
               : e == CUBLASLT_EPILOGUE_BGRADA ? handle->bgrad_more
                                               : 0;
    return handle->clocked ? (uint64_t)(minutes[nth] + more) * MINUTE_NS : 0;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
               const void *alpha, const void *a, cublasLtMatrixLayout_t la,
               const void *b, cublasLtMatrixLayout_t lb, const void *beta,
               const void *c, cublasLtMatrixLayout_t lc, void *d,
               cublasLtMatrixLayout_t out, const cublasLtMatmulAlgo_t *algo,
               void *, size_t, cudaStream_t stream)
{
    bool plain = desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    int nth = (int)algo->data[NTH];
    if (handle->broken || (handle->refuses && !plain) ||
        (handle->clocked && nth == REFUSED))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const void *operands[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)operands[i] % algo->data[i])
            return CUBLAS_STATUS_INVALID_VALUE;
    // The manual says which alignment an algorithm may expect, but not what
    // happens if it is smaller.
    if (alignment_of(desc->bias) < algo->data[BIAS] ||
        alignment_of(desc->aux) < algo->data[AUX])
        emulated::stop("cuBLASLt: bias %p or aux %p is less aligned than when "
                       "the algorithm was offered",
                       desc->bias, desc->aux);
    if (!fits(desc, la, lb, out) || lc != out || c != d ||
        (has_aux(desc) && (!desc->aux || (uintptr_t)desc->aux % 16)))
        return CUBLAS_STATUS_INVALID_VALUE;
    product p = {*desc,
                 *la,
                 *lb,
                 *out,
                 a,
                 b,
                 d,
                 *(const float *)alpha,
                 *(const float *)beta,
                 algo->data[SPLITS] != 0,
                 nth,
                 time_of(handle, nth, desc->epilogue)};
    emulated::enqueue(stream, [p] { run(p); });
    return CUBLAS_STATUS_SUCCESS;
}
