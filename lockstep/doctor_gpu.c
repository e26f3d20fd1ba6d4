// doctor_gpu.c - NVIDIA's driver, toolkit and NCCL, looked up while running:
// lockstep is built without them on most machines.

#include "lockstep/doctor.h"

#include "base/base.h"

#include <dlfcn.h>
#include <string.h>

// A function of a library; NULL if it has none of that name. POSIX lets dlsym()
// return functions, ISO C does not let a cast say so.
static void find_function(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

static void look_at_driver(struct doctor *d)
{
    char line[160], text[192];
    doctor_ask("cat /proc/driver/nvidia/version 2>/dev/null", line,
               sizeof line);
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    int (*version_of)(int *) = NULL;
    int version = 0;
    if (cuda)
        find_function(cuda, "cuDriverGetVersion", &version_of);
    if (version_of && version_of(&version) == 0 && version > 0) {
        snprintf(text, sizeof text, "CUDA %d.%d; %.120s", version / 1000,
                 version % 1000 / 10, line);
        doctor_say(d, FINDING_OK, "GPU driver", text, NULL);
    } else {
        doctor_say(d, FINDING_WITHOUT, "GPU driver",
                   "none: device=cuda will not run; the CPU does all",
                   "NVIDIA's driver, on a machine with its GPU");
    }
    if (cuda)
        dlclose(cuda);
}

// NVML's few functions that say which GPUs there are.
struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned i, void **device);
    int (*name)(void *device, char *name, unsigned size);
};

static void say_gpus(struct doctor *d, const struct nvml *n)
{
    unsigned count = 0;
    if (n->count(&count))
        count = 0;
    for (unsigned i = 0; i < count; i++) {
        void *device;
        char name[96], text[128];
        if (n->handle(i, &device) || n->name(device, name, sizeof name))
            continue;
        snprintf(text, sizeof text, "%u: %s", i, name);
        doctor_say(d, FINDING_OK, "GPU", text, NULL);
    }
    if (count == 0)
        doctor_say(d, FINDING_WITHOUT, "GPU", "the driver sees none",
                   "look at nvidia-smi");
}

static void look_at_gpus(struct doctor *d)
{
    struct nvml n = {0};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        doctor_say(d, FINDING_WITHOUT, "NVML",
                   "none: no utilisation figures of a GPU",
                   "it comes with NVIDIA's driver");
        return;
    }
    find_function(library, "nvmlInit_v2", &n.init);
    find_function(library, "nvmlShutdown", &n.shutdown);
    find_function(library, "nvmlDeviceGetCount_v2", &n.count);
    find_function(library, "nvmlDeviceGetHandleByIndex_v2", &n.handle);
    find_function(library, "nvmlDeviceGetName", &n.name);
    if (n.init && n.shutdown && n.count && n.handle && n.name &&
        n.init() == 0) {
        say_gpus(d, &n);
        n.shutdown();
    } else {
        doctor_say(d, FINDING_WITHOUT, "NVML", "does not start",
                   "look at nvidia-smi");
    }
    dlclose(library);
}

static void look_for_nccl(struct doctor *d)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    int (*version_of)(int *) = NULL;
    int version = 0;
    char text[64];
    if (library)
        find_function(library, "ncclGetVersion", &version_of);
    if (version_of && version_of(&version) == 0) {
        snprintf(text, sizeof text, "%d.%d.%d", version / 10000,
                 version % 10000 / 100, version % 100);
        doctor_say(d, FINDING_OK, "NCCL", text, NULL);
    } else {
        doctor_say(d, FINDING_WITHOUT, "NCCL",
                   "none: sync=allreduce works on the CPU only",
                   "libnccl2 from NVIDIA's repository");
    }
    if (library)
        dlclose(library);
}

void doctor_gpu(struct doctor *d)
{
    char line[160];
    look_at_driver(d);
    look_at_gpus(d);
    doctor_ask("{ nvcc --version || /usr/local/cuda/bin/nvcc --version; } "
               "2>/dev/null | grep release",
               line, sizeof line);
    doctor_say(d, line[0] ? FINDING_OK : FINDING_WITHOUT, "CUDA toolkit",
               line[0] ? line : "no nvcc: the build leaves the GPU code out",
               "NVIDIA's cuda-toolkit, then build anew");
    look_for_nccl(d);
}
