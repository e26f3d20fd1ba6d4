// routine.c - loads cuBLASLt; the descriptors of a product, and the limits for
// its algorithms.
//
// cuBLASLt comes from where the loader finds it, or else from where the build
// found it. lt_close() leaves it loaded, because its kernels are registered
// with the CUDA runtime, whose context is still in use.
//
// cuBLASLt's matrices are column-major. Our row-major out (m, n) = a b is its
// out' (n, m) = b' a'. So its A is our b, its B is our a, and its bias runs
// along our rows. An algorithm that splits k may add up the parts only in fp32
// and in a fixed order: neither in 16 bits nor in place in the output.

#include "model/cuda/routine.h"

#include "base/base.h"
#include "base/library.h"

enum { ALIGNED = 16, FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

static void *find_library(void)
{
    char name[64];
    snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    void *library = dlopen(name, FLAGS);
    if (!library)
        library = dlopen(LOCKSTEP_CUBLASLT, FLAGS);
    if (!library)
        fail("model: %s; try: LD_LIBRARY_PATH, for %s", dlerror(), name);
    return library;
}

static int find_function(const struct lt *lt, const char *name, void *slot)
{
    if (library_find(lt->library, name, slot))
        return fail("model: cuBLASLt has no %s", name);
    return 0;
}

int lt_open(struct lt *lt)
{
    *lt = (struct lt){.library = find_library()};
    if (!lt->library)
        return -1;
    int rc = 0;
#define LT_FIND(name) rc |= find_function(lt, "cublasLt" #name, &lt->name);
    LT_FUNCTIONS(LT_FIND)
    return rc;
}

void lt_close(struct lt *lt)
{
    if (lt->library)
        dlclose(lt->library);
    *lt = (struct lt){0};
}

// ---- one product

// These calls fail because of a defect here, or because there is no memory.
#define LT(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

static cudaDataType_t type_of(enum dtype t)
{
    return t == DTYPE_F16    ? CUDA_R_16F
           : t == DTYPE_BF16 ? CUDA_R_16BF
                             : CUDA_R_32F;
}

// The layout of a row-major (rows, columns) matrix, which is (columns, rows) to
// cuBLASLt. Rows are `row` numbers apart; 0: contiguous.
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

static void set_epilogue(const struct lt *lt, struct routine *r)
{
    const struct product_job *j = &r->shape;
    static const cublasLtEpilogue_t names[] = {
        [EPILOGUE_NONE] = CUBLASLT_EPILOGUE_DEFAULT,
        [EPILOGUE_BIAS] = CUBLASLT_EPILOGUE_BIAS,
        [EPILOGUE_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
        [EPILOGUE_DGELU] = CUBLASLT_EPILOGUE_DGELU,
        [EPILOGUE_BIAS_GRAD] = CUBLASLT_EPILOGUE_BGRADA,
    };
    cublasLtEpilogue_t name = names[j->epilogue];
    set(lt, r->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &name, sizeof name);
    if (j->epilogue == EPILOGUE_GELU || j->epilogue == EPILOGUE_DGELU) {
        int64_t ld = j->n;
        set(lt, r->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    }
}

void routine_point(const struct routine_maker *m, const struct routine *r,
                   const struct product_job *j)
{
    const struct lt *lt = &m->lt;
    if (!r->fused)
        return;
    if (j->epilogue == EPILOGUE_BIAS || j->epilogue == EPILOGUE_GELU)
        set(lt, r->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &j->bias,
            sizeof j->bias);
    if (j->epilogue == EPILOGUE_BIAS_GRAD)
        set(lt, r->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &j->bias_grad,
            sizeof j->bias_grad);
    if (j->epilogue == EPILOGUE_GELU || j->epilogue == EPILOGUE_DGELU)
        set(lt, r->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &j->pre,
            sizeof j->pre);
}

static void describe(const struct routine_maker *m, struct routine *r)
{
    const struct product_job *j = &r->shape;
    const struct lt *lt = &m->lt;
    cudaDataType_t type = type_of(m->format);
    cublasComputeType_t how = m->format == DTYPE_F32 && m->tf32
                                  ? CUBLAS_COMPUTE_32F_FAST_TF32
                                  : CUBLAS_COMPUTE_32F;
    cublasOperation_t yes = CUBLAS_OP_T, no = CUBLAS_OP_N;
    LT(lt->MatmulDescCreate(&r->desc, how, CUDA_R_32F));
    set(lt, r->desc, CUBLASLT_MATMUL_DESC_TRANSA, j->tb ? &yes : &no,
        sizeof yes);
    set(lt, r->desc, CUBLASLT_MATMUL_DESC_TRANSB, j->ta ? &yes : &no,
        sizeof yes);
    r->a = make_layout(lt, j->tb ? j->n : j->k, j->tb ? j->k : j->n, 0, type);
    r->b = make_layout(lt, j->ta ? j->k : j->m, j->ta ? j->m : j->k, j->a_row,
                       type);
    r->out = make_layout(lt, j->m, j->n, j->out_row,
                         j->out_fp32 ? CUDA_R_32F : type);
    if (r->target)
        set(lt, r->desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &r->target,
            sizeof r->target);
    if (r->fused)
        set_epilogue(lt, r);
}

// The alignment of an epilogue's pointers decides which algorithms fit. So
// these pointers are set before the search, with the smallest alignment that
// they have in any layer.
static void point_at_least(const struct routine_maker *m, struct routine *r)
{
    void *least = (void *)(uintptr_t)ALIGNED;
    struct product_job j = r->shape;
    j.bias = j.pre = least;
    j.bias_grad = least;
    routine_point(m, r, &j);
}

static cublasLtMatmulPreference_t prefer(const struct routine_maker *m)
{
    const struct lt *lt = &m->lt;
    cublasLtMatmulPreference_t want;
    uint32_t aligned = ALIGNED;
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    LT(lt->MatmulPreferenceCreate(&want));
    LT(lt->MatmulPreferenceSetAttribute(
        want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &m->workspace,
        sizeof m->workspace));
    LT(lt->MatmulPreferenceSetAttribute(
        want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
        sizeof reductions));
    for (int i = 0; i < 4; i++)
        LT(lt->MatmulPreferenceSetAttribute(want, alignments[i], &aligned,
                                            sizeof aligned));
    return want;
}

int routine_make(const struct routine_maker *m, struct routine *r, bool fused,
                 cublasLtMatmulAlgo_t *algos, int most)
{
    const struct lt *lt = &m->lt;
    cublasLtMatmulHeuristicResult_t found[CUDA_PRODUCT_ALGORITHMS];
    int count = 0, fit = 0;
    CHECK(most <= CUDA_PRODUCT_ALGORITHMS);
    r->fused = fused;
    describe(m, r);
    point_at_least(m, r);
    cublasLtMatmulPreference_t want = prefer(m);
    cublasStatus_t status =
        lt->MatmulAlgoGetHeuristic(m->handle, r->desc, r->a, r->b, r->out,
                                   r->out, want, most, found, &count);
    lt->MatmulPreferenceDestroy(want);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS)
            algos[fit++] = found[i].algo;
    if (fit == 0)
        routine_destroy(m, r);
    return fit;
}

void routine_destroy(const struct routine_maker *m, const struct routine *r)
{
    m->lt.MatmulDescDestroy(r->desc);
    m->lt.MatrixLayoutDestroy(r->a);
    m->lt.MatrixLayoutDestroy(r->b);
    m->lt.MatrixLayoutDestroy(r->out);
}
