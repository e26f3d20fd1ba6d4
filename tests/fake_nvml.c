// fake_nvml.c - a libnvidia-ml.so.1 with one GPU, for tests without one.
//
// The functions that telemetry/nvml.c looks for, by NVML's names and types. The
// environment variable FAKE_NVML names what does not work: init, power.

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
int fake_nvml_users(void); // begun and not ended

static int users;
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
