// nvml.c - the five functions of libnvidia-ml.so.1 that the sampler needs.
//
// Their types as its header states them; a handle is an opaque pointer and 0
// means success.

#include "telemetry/nvml.h"

#include "base/base.h"

#include <dlfcn.h>

struct utilization { // nvmlUtilization_t, percent
    unsigned gpu, memory;
};

struct memory { // nvmlMemory_t, bytes
    unsigned long long total, free, used;
};

struct nvml {
    void *library, *gpu;
    int (*init)(void);
    int (*shutdown)(void);
    int (*handle)(unsigned index, void **gpu);
    int (*utilization)(void *gpu, struct utilization *out);
    int (*memory)(void *gpu, struct memory *out);
    int (*power)(void *gpu, unsigned *milliwatts);
    bool initialised;
};

// A function pointer out of dlsym's data pointer, as POSIX has it.
static int find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    *(void **)function = at;
    return at ? 0 : -1;
}

static int start(struct nvml *n, int gpu)
{
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library || find(n->library, "nvmlInit_v2", &n->init) ||
        find(n->library, "nvmlShutdown", &n->shutdown) ||
        find(n->library, "nvmlDeviceGetHandleByIndex_v2", &n->handle) ||
        find(n->library, "nvmlDeviceGetUtilizationRates", &n->utilization) ||
        find(n->library, "nvmlDeviceGetMemoryInfo", &n->memory) ||
        find(n->library, "nvmlDeviceGetPowerUsage", &n->power) || n->init())
        return -1;
    n->initialised = true;
    return n->handle((unsigned)gpu, &n->gpu) ? -1 : 0;
}

struct nvml *nvml_open(int gpu)
{
    struct nvml *n = mem_alloc(1, sizeof *n);
    if (n && start(n, gpu))
        nvml_close(&n);
    return n;
}

int nvml_read(struct nvml *n, struct nvml_sample *out)
{
    struct utilization u;
    struct memory m;
    unsigned milliwatts;
    if (n->utilization(n->gpu, &u) || n->memory(n->gpu, &m) ||
        n->power(n->gpu, &milliwatts))
        return -1;
    *out = (struct nvml_sample){.util_share = u.gpu / 100.0,
                                .memory_bytes = (double)m.used,
                                .power_w = milliwatts / 1000.0};
    return 0;
}

void nvml_close(struct nvml **n)
{
    if (!*n)
        return;
    if ((*n)->initialised)
        (*n)->shutdown();
    if ((*n)->library)
        dlclose((*n)->library);
    mem_free(*n);
    *n = NULL;
}
