// lt.c - loads cuBLASLt from where the loader finds it, or else from where the
// build found it.
//
// lt_close() leaves the library loaded, because its kernels are registered with
// the CUDA runtime, whose context is still in use.

#include "model/cuda/lt.h"

#include "base/base.h"
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

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
