// nvml.c - the seven functions of libnvidia-ml.so.1 that the sampler needs.
//
// Their types as its header states them; a handle is an opaque pointer and 0
// means success.

#include "telemetry/nvml.h"

#include "base/base.h"

#include <dlfcn.h>
#include <math.h>

enum { CLOCK_SM = 1 }; // nvmlClockType_t

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
    int (*handle)(const char *uuid, void **gpu);
    int (*utilization)(void *gpu, struct utilization *out);
    int (*memory)(void *gpu, struct memory *out);
    int (*power)(void *gpu, unsigned *milliwatts);
    int (*clock)(void *gpu, int which, unsigned *mhz);
    bool initialised;
};

// A function pointer out of dlsym's data pointer, as POSIX has it.
static int find(void *library, const char *name, void *function)
{
    void *at = dlsym(library, name);
    *(void **)function = at;
    return at ? 0 : -1;
}

void nvml_uuid_text(char text[NVML_UUID_TEXT],
                    const unsigned char uuid[NVML_UUID])
{
    char *at = text + sprintf(text, "GPU");
    for (int i = 0; i < NVML_UUID; i++)
        at += sprintf(at,
                      i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-%02x"
                                                                  : "%02x",
                      uuid[i]);
}

static int start(struct nvml *n, const unsigned char uuid[NVML_UUID])
{
    char text[NVML_UUID_TEXT];
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library || find(n->library, "nvmlInit_v2", &n->init) ||
        find(n->library, "nvmlShutdown", &n->shutdown) ||
        find(n->library, "nvmlDeviceGetHandleByUUID", &n->handle) ||
        find(n->library, "nvmlDeviceGetUtilizationRates", &n->utilization) ||
        find(n->library, "nvmlDeviceGetMemoryInfo", &n->memory) ||
        find(n->library, "nvmlDeviceGetPowerUsage", &n->power) ||
        find(n->library, "nvmlDeviceGetClockInfo", &n->clock) || n->init())
        return -1;
    n->initialised = true;
    nvml_uuid_text(text, uuid);
    return n->handle(text, &n->gpu) ? -1 : 0;
}

struct nvml *nvml_open(const unsigned char uuid[NVML_UUID])
{
    struct nvml *n = mem_alloc(1, sizeof *n);
    if (n && start(n, uuid))
        nvml_close(&n);
    return n;
}

void nvml_read(struct nvml *n, struct nvml_sample *out)
{
    struct utilization u;
    struct memory m;
    unsigned milliwatts, mhz;
    *out = (struct nvml_sample){NAN, NAN, NAN, NAN};
    if (!n->utilization(n->gpu, &u))
        out->util_share = u.gpu / 100.0;
    if (!n->memory(n->gpu, &m))
        out->memory_bytes = (double)m.used;
    if (!n->power(n->gpu, &milliwatts))
        out->power_w = milliwatts / 1000.0;
    if (!n->clock(n->gpu, CLOCK_SM, &mhz))
        out->clock_mhz = mhz;
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
