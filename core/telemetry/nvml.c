// nvml.c - calls the functions of libnvidia-ml.so.1 that the sampler needs.
//
// Their types and numbers are those of NVIDIA's nvml.h; a handle is an opaque
// pointer, and 0 means success. The functions that start() looks up must be
// there. If an older driver lacks one that start_others() or start_counters()
// looks up, its values stay NaN.

#include "telemetry/nvml.h"

#include "base/base.h"
#include "base/library.h"

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

// ---- counters: a value is the change between two samples

enum { COUNTERS = NVML_METRICS - NVML_SM };
static const struct {
    unsigned id; // NVML_GPM_METRIC_*
    double unit;
} counters[COUNTERS] = {
    [NVML_SM - NVML_SM] = {2, 0.01},
    [NVML_OCCUPANCY - NVML_SM] = {3, 0.01},
    [NVML_TENSOR - NVML_SM] = {5, 0.01},
    [NVML_DRAM - NVML_SM] = {10, 0.01},
    [NVML_NVLINK_IN - NVML_SM] = {60, 1048576},
    [NVML_NVLINK_OUT - NVML_SM] = {61, 1048576},
};

// The length of the array of metrics depends on the version of the library. The
// library reads only `count` of them, so this longer array is right for every
// version.
enum { VERSION = 1, MAX_METRICS = 512 };

struct request { // nvmlGpmMetricsGet_t
    unsigned version, count;
    void *before, *after;
    struct metric { // nvmlGpmMetric_t
        unsigned id;
        int status;
        double value;
        const char *names[3];
    } metrics[MAX_METRICS];
};

struct support { // nvmlGpmSupport_t
    unsigned version, yes;
};

struct nvml {
    void *library, *gpu;
    bool initialised, counts; // it has counters
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

    // The functions nvmlGpm..() of the counters.
    int (*query)(void *gpu, struct support *out);
    int (*alloc)(void **sample);
    int (*release)(void *sample);
    int (*take)(void *gpu, void *sample);
    int (*get)(struct request *r);
    void *samples[2];
    int taken; // samples so far; the newest is samples[(taken - 1) % 2]
    struct request request;
};

const char *const nvml_names[NVML_METRICS] = {
    [NVML_UTIL] = "gpu_util_share",
    [NVML_MEMORY] = "gpu_memory_bytes",
    [NVML_POWER] = "gpu_power_w",
    [NVML_CLOCK] = "gpu_clock_mhz",
    [NVML_ENERGY] = "gpu_energy_j",
    [NVML_POWER_LIMITED] = "gpu_power_limited",
    [NVML_HEAT_LIMITED] = "gpu_heat_limited",
    [NVML_SM] = "gpu_sm_share",
    [NVML_OCCUPANCY] = "gpu_occupancy_share",
    [NVML_TENSOR] = "gpu_tensor_share",
    [NVML_DRAM] = "gpu_dram_share",
    [NVML_NVLINK_IN] = "gpu_nvlink_in_bytes_per_s",
    [NVML_NVLINK_OUT] = "gpu_nvlink_out_bytes_per_s",
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
}

// Whether there are counters.
static bool start_counters(struct nvml *n)
{
    struct support support = {.version = VERSION};
    if (library_find(n->library, "nvmlGpmQueryDeviceSupport", &n->query) ||
        library_find(n->library, "nvmlGpmSampleAlloc", &n->alloc) ||
        library_find(n->library, "nvmlGpmSampleFree", &n->release) ||
        library_find(n->library, "nvmlGpmSampleGet", &n->take) ||
        library_find(n->library, "nvmlGpmMetricsGet", &n->get))
        return false;
    return !n->query(n->gpu, &support) && support.yes &&
           !n->alloc(&n->samples[0]) && !n->alloc(&n->samples[1]);
}

struct nvml *nvml_open(const unsigned char uuid[NVML_UUID])
{
    struct nvml *n = mem_alloc(1, sizeof *n);
    if (n && start(n, uuid))
        nvml_close(&n);
    if (n) {
        start_others(n);
        n->counts = start_counters(n);
    }
    return n;
}

static void read_counters(struct nvml *n, double out[COUNTERS])
{
    struct request *r = &n->request;
    if (!n->counts || n->take(n->gpu, n->samples[n->taken % 2]) ||
        ++n->taken < 2)
        return;
    r->version = VERSION;
    r->count = COUNTERS;
    r->before = n->samples[n->taken % 2];
    r->after = n->samples[(n->taken - 1) % 2];
    for (int i = 0; i < COUNTERS; i++)
        r->metrics[i] = (struct metric){.id = counters[i].id};
    if (n->get(r))
        return;
    for (int i = 0; i < COUNTERS; i++)
        if (!r->metrics[i].status)
            out[i] = r->metrics[i].value * counters[i].unit;
}

void nvml_read(struct nvml *n, double out[NVML_METRICS])
{
    struct utilization u;
    struct memory m;
    unsigned milliwatts, mhz;
    unsigned long long energy, reasons;
    for (int i = 0; i < NVML_METRICS; i++)
        out[i] = NAN;
    if (!n->utilization(n->gpu, &u))
        out[NVML_UTIL] = u.gpu / 100.0;
    if (!n->memory(n->gpu, &m))
        out[NVML_MEMORY] = (double)m.used;
    if (!n->power(n->gpu, &milliwatts))
        out[NVML_POWER] = milliwatts / 1000.0;
    if (!n->clock(n->gpu, CLOCK_SM, &mhz))
        out[NVML_CLOCK] = mhz;
    if (n->energy && !n->energy(n->gpu, &energy))
        out[NVML_ENERGY] = (double)(energy - n->energy_before) / 1000;
    if (n->reasons && !n->reasons(n->gpu, &reasons)) {
        out[NVML_POWER_LIMITED] = (reasons & POWER_REASONS) != 0;
        out[NVML_HEAT_LIMITED] = (reasons & HEAT_REASONS) != 0;
    }
    read_counters(n, &out[NVML_SM]);
}

void nvml_close(struct nvml **n)
{
    if (!*n)
        return;
    for (int i = 0; i < 2; i++)
        if ((*n)->samples[i])
            (*n)->release((*n)->samples[i]);
    if ((*n)->initialised)
        (*n)->shutdown();
    if ((*n)->library)
        dlclose((*n)->library);
    mem_free(*n);
    *n = NULL;
}
