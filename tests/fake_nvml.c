// fake_nvml.c - a libnvidia-ml.so.1 with one GPU, for tests without one.
//
// It has the functions that telemetry/nvml.c uses, with NVML's names and types.
// The environment variable FAKE_NVML names what does not work: init, power, gpm
// (the GPU has no counters), nvlink (it has no counters of NVLink). A counter
// grows by its number with each sample. So a test can tell from a difference
// which counter it is, and how far apart the two samples are.

#include <stdlib.h>
#include <string.h>

enum { SUCCESS, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu);
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned percent[2]);
int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long bytes[3]);
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts);
int nvmlDeviceGetClockInfo(void *gpu, int which, unsigned *mhz);
int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *mj);
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *bits);
int fake_nvml_users(void);   // nvmlInit_v2() without nvmlShutdown()
int fake_nvml_samples(void); // samples allocated and not freed

struct support {
    unsigned version, yes;
};
struct sample {
    double nth;
};
struct request {
    unsigned version, count;
    struct sample *before, *after;
    struct {
        unsigned id;
        int status;
        double value;
        const char *names[3];
    } metrics[];
};
int nvmlGpmQueryDeviceSupport(void *gpu, struct support *support);
int nvmlGpmSampleAlloc(struct sample **sample);
int nvmlGpmSampleFree(struct sample *sample);
int nvmlGpmSampleGet(void *gpu, struct sample *sample);
int nvmlGpmMetricsGet(struct request *r);

static int users, samples, taken;
static char the_gpu;

static int broken(const char *what)
{
    const char *said = getenv("FAKE_NVML");
    return said && !strcmp(said, what);
}

int nvmlInit_v2(void)
{
    if (broken("init"))
        return DRIVER_NOT_LOADED;
    users++;
    return SUCCESS;
}

int nvmlShutdown(void)
{
    users--;
    return SUCCESS;
}

int fake_nvml_users(void)
{
    return users;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu)
{
    if (strcmp(uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff") != 0)
        return NOT_FOUND;
    *gpu = &the_gpu;
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *gpu, unsigned percent[2])
{
    percent[0] = gpu == &the_gpu ? 37 : 0;
    percent[1] = 11;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long bytes[3])
{
    bytes[0] = 8u << 20;
    bytes[1] = 5u << 20;
    bytes[2] = gpu == &the_gpu ? 3000000 : 0;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts)
{
    if (broken("power"))
        return NOT_SUPPORTED;
    *milliwatts = gpu == &the_gpu ? 250500 : 0;
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(void *gpu, int which, unsigned *mhz)
{
    *mhz = gpu == &the_gpu && which == 1 ? 1380 : 0;
    return SUCCESS;
}

// One joule more with each call.
int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *mj)
{
    static unsigned long long used = 5000000;
    *mj = gpu == &the_gpu ? used += 1000 : 0;
    return SUCCESS;
}

// The variable FAKE_REASONS has the bits, as a number.
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *bits)
{
    const char *said = getenv("FAKE_REASONS");
    *bits = gpu == &the_gpu && said ? strtoull(said, NULL, 0) : 0;
    return SUCCESS;
}

// ---- counters

int fake_nvml_samples(void)
{
    return samples;
}

int nvmlGpmQueryDeviceSupport(void *gpu, struct support *support)
{
    if (support->version != 1)
        return NOT_SUPPORTED;
    support->yes = gpu == &the_gpu && !broken("gpm");
    return SUCCESS;
}

int nvmlGpmSampleAlloc(struct sample **sample)
{
    *sample = calloc(1, sizeof **sample);
    samples += *sample != NULL;
    return *sample ? SUCCESS : NOT_FOUND;
}

int nvmlGpmSampleFree(struct sample *sample)
{
    samples--;
    free(sample);
    return SUCCESS;
}

int nvmlGpmSampleGet(void *gpu, struct sample *sample)
{
    sample->nth = gpu == &the_gpu ? ++taken : 0;
    return SUCCESS;
}

// A metric's value is its number times the distance of the two samples.
int nvmlGpmMetricsGet(struct request *r)
{
    double between = r->after->nth - r->before->nth;
    if (r->version != 1 || between <= 0)
        return NOT_SUPPORTED;
    for (unsigned i = 0; i < r->count; i++) {
        r->metrics[i].status = broken("nvlink") && r->metrics[i].id >= 60
                                   ? NOT_SUPPORTED
                                   : SUCCESS;
        r->metrics[i].value = r->metrics[i].id * between;
    }
    return SUCCESS;
}
