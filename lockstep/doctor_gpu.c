// doctor_gpu.c - checks NVIDIA's driver, toolkit, NCCL and cuDNN. It loads them
// while running, since most builds of Lockstep do not link them.

#include "lockstep/doctor.h"

#include "base/base.h"
#include "model/cuda/dnn.h"

#include <dlfcn.h>
#include <string.h>

// Stores the address of a library's function in *function; NULL if there is
// none. It uses memcpy(), because ISO C has no cast from void * to a function
// pointer.
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
                   "none: device=cuda cannot run, device=cpu can",
                   "NVIDIA's driver, on a machine with an NVIDIA GPU");
    }
    if (cuda)
        dlclose(cuda);
}

// The functions of NVML that list the GPUs.
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
                   "none: a GPU's utilisation cannot be measured",
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

// Looks for cuDNN as a training does: by the same paths, with the same checks.
static void look_for_cudnn(struct doctor *d)
{
    char text[512];
    struct dnn dnn;
    if (dnn_load(&dnn)) {
        snprintf(text, sizeof text, "%s", fail_message());
        char *remedy = strstr(text, "; try: ");
        if (remedy)
            *remedy = '\0';
        doctor_say(d, FINDING_WITHOUT, "cuDNN", text,
                   remedy ? remedy + strlen("; try: ") : NULL);
        return;
    }
    snprintf(text, sizeof text, "%zu.%zu.%zu, for CUDA %zu",
             dnn.version / 10000, dnn.version / 100 % 100, dnn.version % 100,
             dnn.GetCudartVersion() / 1000);
    doctor_say(d, FINDING_OK, "cuDNN", text, NULL);
    dnn_close(&dnn);
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
               line[0] ? line : "no nvcc: the build has no GPU code",
               "NVIDIA's cuda-toolkit, then build again");
    look_for_nccl(d);
    look_for_cudnn(d);
}
