// dnn.c - loads cuDNN from where the loader finds it, or, if there is none or
// it cannot be used, from where the build found it.
//
// dnn_close() leaves the library loaded, as lt_close() does (routine.c): its
// kernels are registered with the CUDA runtime.

#include "model/cuda/dnn.h"

#include "base/base.h"
#include "base/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME "libcudnn.so.9"

enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

static int find_function(const struct dnn *dnn, const char *name, void *slot)
{
    if (library_find(dnn->library, name, slot))
        return fail("attention=cudnn: " NAME " has no %s; try: another "
                    "version, or attention=ours",
                    name);
    return 0;
}

// True if the cuBLASLt of cuDNN's CUDA is loaded: by its name, or from where
// cuDNN itself looks, beside it or in its neighbours on PyPI.
static bool load_cublaslt(const struct dnn *dnn)
{
    char path[4096], neighbour[32];
    const char *const folders[] = {".", "../../cublas/lib", neighbour};
    const int cuda = (int)dnn->GetCudartVersion() / 1000;
    struct link_map *map = NULL;
    snprintf(path, sizeof path, "libcublasLt.so.%d", cuda);
    if (dlopen(path, FLAGS))
        return true;
    if (dlinfo(dnn->library, RTLD_DI_LINKMAP, &map))
        return false;
    snprintf(neighbour, sizeof neighbour, "../../cu%d/lib", cuda);
    const char *end = strrchr(map->l_name, '/');
    for (int i = 0; end && i < 3; i++) {
        snprintf(path, sizeof path, "%.*s/%s/libcublasLt.so.%d",
                 (int)(end - map->l_name), map->l_name, folders[i], cuda);
        if (dlopen(path, FLAGS))
            return true;
    }
    return false;
}

// Without cuBLASLt, cuDNN would end the process at its first descriptor.
static int check_cublaslt(const struct dnn *dnn)
{
    size_t cuda = dnn->GetCudartVersion() / 1000;
    if (load_cublaslt(dnn))
        return 0;
    return fail("attention=cudnn: cuDNN %s is for CUDA %zu and finds no "
                "libcublasLt.so.%zu; try: pip install nvidia-cudnn-cu%d, or "
                "attention=ours",
                dnn->release, cuda, cuda, LOCKSTEP_CUDA_MAJOR);
}

static int check_version(struct dnn *dnn)
{
    size_t v = dnn->version = dnn->GetVersion();
    snprintf(dnn->release, sizeof dnn->release, "%zu.%zu.%zu", v / 10000,
             v / 100 % 100, v % 100);
    if (v >= DNN_OLDEST)
        return 0;
    return fail("attention=cudnn needs cuDNN %d.%d or newer, " NAME
                " is %s; try: pip install -U nvidia-cudnn-cu%d and "
                "LD_LIBRARY_PATH, or attention=ours",
                DNN_OLDEST / 10000, DNN_OLDEST / 100 % 100, dnn->release,
                LOCKSTEP_CUDA_MAJOR);
}

// Takes an opened library that has all functions and is usable. Returns 0, or
// -1 after fail(), and then closes it.
static int take(struct dnn *dnn, void *library)
{
    int rc = 0;
    *dnn = (struct dnn){.library = library};
#define DNN_FIND(result, name, arguments)                                      \
    if (rc == 0)                                                               \
        rc = find_function(dnn, "cudnn" #name, &dnn->name);
    DNN_FUNCTIONS(DNN_FIND)
    if (rc || check_version(dnn) || check_cublaslt(dnn)) {
        dnn_close(dnn);
        return -1;
    }
    return 0;
}

int dnn_load(struct dnn *dnn)
{
    static const char *const places[] = {NAME, LOCKSTEP_CUDNN};
    char why[512] = "";
    bool opened = false;
    *dnn = (struct dnn){0};
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(places[i], FLAGS);
        if (!library)
            fail("attention=cudnn: %s; try: pip install nvidia-cudnn-cu%d and "
                 "LD_LIBRARY_PATH, or attention=ours",
                 dlerror(), LOCKSTEP_CUDA_MAJOR);
        else if (take(dnn, library) == 0)
            return 0;
        // Of two reasons: the first, but a library's before a missing one's.
        if (i == 0 || (library && !opened))
            snprintf(why, sizeof why, "%s", fail_message());
        opened = opened || library;
    }
    return fail("%s", why);
}

int dnn_open(struct dnn *dnn, void *stream)
{
    if (dnn_load(dnn))
        return -1;
    if (dnn->GetCudartVersion() / 1000 != LOCKSTEP_CUDA_MAJOR)
        log_line("cuDNN is for CUDA %zu, this build is for CUDA %d",
                 dnn->GetCudartVersion() / 1000, LOCKSTEP_CUDA_MAJOR);
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
    return fail("attention=cudnn: cuDNN %s%s%s: %s%s; try: attention=ours",
                dnn->release, dnn->gpu ? " on " : "", dnn->gpu ? dnn->gpu : "",
                what, why);
}
