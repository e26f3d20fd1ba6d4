// openblas.c - loads OpenBLAS by name: Lockstep builds and runs without it.

#include "bench/openblas.h"

#include "base/base.h"
#include "base/library.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

// Constants of cblas.h. OPENMP is what openblas_get_parallel() returns if
// OpenBLAS was built with OpenMP.
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112, OPENMP = 2 };

static const char name[] = "libopenblas.so.0";

// oneDNN's names of instruction sets are those of x86.
#if defined(__x86_64__)
static void choose_kernels(void)
{
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    unsigned wide = dnnl_cpu_isa_avx512_core, narrow = dnnl_cpu_isa_avx2;
    if ((isa & wide) == wide)
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    else if ((isa & narrow) == narrow)
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
}
#else
static void choose_kernels(void)
{
}
#endif

int openblas_open(struct openblas *b, int threads)
{
    *b = (struct openblas){0};
    choose_kernels(); // before dlopen(): OpenBLAS reads the variable there
    b->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!b->library)
        return fail("%s; try: apt-get install libopenblas0-openmp", dlerror());
    void (*set_threads)(int);
    int (*parallel)(void);
    char *(*core)(void);
    library_find(b->library, "openblas_get_parallel", &parallel);
    if (library_find(b->library, "cblas_sgemm", &b->sgemm) ||
        library_find(b->library, "openblas_set_num_threads", &set_threads) ||
        library_find(b->library, "openblas_get_corename", &core)) {
        openblas_close(b);
        return fail("%s: has no cblas_sgemm; try: apt-get install "
                    "libopenblas0-openmp",
                    name);
    }
    // OpenBLAS's own threads, which are not OpenMP's, would spin after each
    // product and slow down our threads.
    if (threads > 1 && parallel && parallel() != OPENMP) {
        openblas_close(b);
        return fail("%s: not its OpenMP build; try: apt-get install "
                    "libopenblas0-openmp",
                    name);
    }
    set_threads(threads);
    b->core = core();
    return 0;
}

void openblas_close(struct openblas *b)
{
    if (b->library)
        dlclose(b->library);
    *b = (struct openblas){0};
}

void openblas_run(const struct openblas *b, bool ta, bool tb, int m, int n,
                  int k, const float *left, const float *right, float *out)
{
    b->sgemm(ROW_MAJOR, ta ? TRANSPOSED : PLAIN, tb ? TRANSPOSED : PLAIN, m, n,
             k, 1, left, ta ? m : k, right, tb ? k : n, 0, out, n);
}
