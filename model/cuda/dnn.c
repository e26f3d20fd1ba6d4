// dnn.c - loads cuDNN from where the loader finds it, or else from where the
// build found it.
//
// dnn_close() leaves the library loaded, as lt_close() does (lt.c): its kernels
// are registered with the CUDA runtime.

#include "model/cuda/dnn.h"

#include "base/base.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define NAME "libcudnn.so.9"

enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

static int too_old(size_t version)
{
    return fail("attention=cudnn needs cuDNN %d.%d or newer, " NAME
                " is %zu.%zu.%zu; try: pip install -U nvidia-cudnn-cu%d and "
                "LD_LIBRARY_PATH, or attention=ours",
                DNN_OLDEST / 10000, DNN_OLDEST / 100 % 100, version / 10000,
                version / 100 % 100, version % 100, LOCKSTEP_CUDA_MAJOR);
}

// Finds a function's address. memcpy stores it, since ISO C has no cast from a
// pointer to data to a pointer to a function.
static int find_function(const struct dnn *dnn, const char *name, void *slot)
{
    void *at = dlsym(dnn->library, name);
    if (!at)
        return fail("attention=cudnn: " NAME " has no %s; try: another "
                    "version, or attention=ours",
                    name);
    memcpy(slot, &at, sizeof at);
    return 0;
}

int dnn_load(struct dnn *dnn)
{
    char why[256] = "";
    *dnn = (struct dnn){.library = dlopen(NAME, FLAGS)};
    if (!dnn->library) { // the next dlopen() overwrites the reason
        snprintf(why, sizeof why, "%s", dlerror());
        dnn->library = dlopen(LOCKSTEP_CUDNN, FLAGS);
    }
    if (!dnn->library)
        return fail("attention=cudnn: %s; try: pip install nvidia-cudnn-cu%d "
                    "and LD_LIBRARY_PATH, or attention=ours",
                    why, LOCKSTEP_CUDA_MAJOR);
    int rc = 0;
#define DNN_FIND(result, name, arguments)                                      \
    if (rc == 0)                                                               \
        rc = find_function(dnn, "cudnn" #name, &dnn->name);
    DNN_FUNCTIONS(DNN_FIND)
    if (rc == 0) {
        dnn->version = dnn->GetVersion();
        if (dnn->version < DNN_OLDEST)
            rc = too_old(dnn->version);
    }
    if (rc)
        dnn_close(dnn);
    return rc;
}

int dnn_open(struct dnn *dnn, void *stream)
{
    if (dnn_load(dnn))
        return -1;
    int status = dnn->Create(&dnn->handle);
    if (status) {
        dnn->handle = NULL;
        return dnn_fail(dnn, "does not start", status);
    }
    status = dnn->SetStream(dnn->handle, stream);
    return status ? dnn_fail(dnn, "takes no stream", status) : 0;
}

void dnn_close(struct dnn *dnn)
{
    if (dnn->handle)
        dnn->Destroy(dnn->handle);
    if (dnn->library)
        dlclose(dnn->library);
    *dnn = (struct dnn){0};
}

int dnn_fail(const struct dnn *dnn, const char *what, int status)
{
    char reason[160] = "", why[256] = "";
    if (status) {
        dnn->GetLastErrorString(reason, sizeof reason);
        reason[strcspn(reason, "\n")] = '\0';
        snprintf(why, sizeof why, ": %.80s (%s)", dnn->GetErrorString(status),
                 reason);
    }
    return fail("attention=cudnn: cuDNN %zu.%zu.%zu: %s%s; try: attention=ours",
                dnn->version / 10000, dnn->version / 100 % 100,
                dnn->version % 100, what, why);
}
