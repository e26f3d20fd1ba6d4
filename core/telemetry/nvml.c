// nvml.c - calls the functions of libnvidia-ml.so.1 that the sampler needs.
//
// Their types are those of NVIDIA's nvml.h; a handle is an opaque pointer, and
// 0 means success. The functions that start() looks up must be there. If an
// older driver lacks one that start_others() looks up, its values stay NaN.

#include "telemetry/nvml.h"

#include "base/base.h"
#include "base/library.h"

#include <dlfcn.h>
#include <math.h>

enum { CLOCK_SM = 1 }; // nvmlClockType_t

// Bits of NVML's "clocks event reasons". POWER_REASONS: the software's power
// cap and the hardware's power brake. HEAT_REASONS: the thermal limits of
// software and hardware.
enum { POWER_REASONS = 0x04 | 0x80, HEAT_REASONS = 0x20 | 0x40 };

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
    int (*energy)(void *gpu, unsigned long long *millijoules);
    int (*reasons)(void *gpu, unsigned long long *bits);
    unsigned long long energy_before; // millijoules
    struct gpm *gpm;
    bool initialised;
};

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
    if (!n->library || library_find(n->library, "nvmlInit_v2", &n->init) ||
        library_find(n->library, "nvmlShutdown", &n->shutdown) ||
        library_find(n->library, "nvmlDeviceGetHandleByUUID", &n->handle) ||
        library_find(n->library, "nvmlDeviceGetUtilizationRates",
                     &n->utilization) ||
        library_find(n->library, "nvmlDeviceGetMemoryInfo", &n->memory) ||
        library_find(n->library, "nvmlDeviceGetPowerUsage", &n->power) ||
        library_find(n->library, "nvmlDeviceGetClockInfo", &n->clock) ||
        n->init())
        return -1;
    n->initialised = true;
    nvml_uuid_text(text, uuid);
    return n->handle(text, &n->gpu) ? -1 : 0;
}

static void start_others(struct nvml *n)
{
    if (library_find(n->library, "nvmlDeviceGetCurrentClocksEventReasons",
                     &n->reasons))
        library_find(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons",
                     &n->reasons);
    if (!library_find(n->library, "nvmlDeviceGetTotalEnergyConsumption",
                      &n->energy) &&
        n->energy(n->gpu, &n->energy_before))
        n->energy = NULL;
    n->gpm = gpm_open(n->library, n->gpu);
}

struct nvml *nvml_open(const unsigned char uuid[NVML_UUID])
{
    struct nvml *n = mem_alloc(1, sizeof *n);
    if (n && start(n, uuid))
        nvml_close(&n);
    if (n)
        start_others(n);
    return n;
}

void nvml_read(struct nvml *n, struct nvml_sample *out)
{
    struct utilization u;
    struct memory m;
    unsigned milliwatts, mhz;
    unsigned long long energy, reasons;
    *out = (struct nvml_sample){.util_share = NAN,
                                .memory_bytes = NAN,
                                .power_w = NAN,
                                .clock_mhz = NAN,
                                .energy_j = NAN,
                                .power_limited = NAN,
                                .heat_limited = NAN};
    if (!n->utilization(n->gpu, &u))
        out->util_share = u.gpu / 100.0;
    if (!n->memory(n->gpu, &m))
        out->memory_bytes = (double)m.used;
    if (!n->power(n->gpu, &milliwatts))
        out->power_w = milliwatts / 1000.0;
    if (!n->clock(n->gpu, CLOCK_SM, &mhz))
        out->clock_mhz = mhz;
    if (n->energy && !n->energy(n->gpu, &energy))
        out->energy_j = (double)(energy - n->energy_before) / 1000;
    if (n->reasons && !n->reasons(n->gpu, &reasons)) {
        out->power_limited = (reasons & POWER_REASONS) != 0;
        out->heat_limited = (reasons & HEAT_REASONS) != 0;
    }
    gpm_read(n->gpm, &out->gpm);
}

void nvml_close(struct nvml **n)
{
    if (!*n)
        return;
    gpm_close(&(*n)->gpm);
    if ((*n)->initialised)
        (*n)->shutdown();
    if ((*n)->library)
        dlclose((*n)->library);
    mem_free(*n);
    *n = NULL;
}
