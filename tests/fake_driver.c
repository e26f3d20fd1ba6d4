// fake_driver.c - a libcuda.so.1 without a GPU, for a cuDNN that only plans.
//
// cuDNN compiles a plan's kernels for the GPU that a device descriptor
// describes, and gives them to the driver. This driver accepts them, remembers
// the last name, and refuses everything else. The types are those of cuda.h.

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DONE = 0, WRONG = 1, NOT_FOUND = 500 };

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorString(int error, const char **text);
int cuGetExportTable(const void **table, const void *id);
int cuGetProcAddress(const char *name, void **at, int version, uint64_t flags);
int cuGetProcAddress_v2(const char *name, void **at, int version,
                        uint64_t flags, int *found);
int cuCtxGetCurrent(void **context);
int cuLibraryLoadData(void **library, const void *code, void **options,
                      void **values, unsigned n, void **library_options,
                      void **library_values, unsigned library_n);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuKernelGetFunction(void **function, void *kernel);
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device);
int cuModuleLoadData(void **module, const void *code);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
const char *fake_driver_kernel(void);

static int thing; // stands for libraries, kernels and functions
static char kernel[256];

// Returns the name of the last kernel that was asked for.
const char *fake_driver_kernel(void)
{
    return kernel;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return DONE;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return DONE;
}

int cuGetErrorString(int error, const char **text)
{
    (void)error;
    *text = "no GPU";
    return DONE;
}

int cuGetExportTable(const void **table, const void *id)
{
    (void)id;
    *table = NULL;
    return WRONG;
}

int cuGetProcAddress_v2(const char *name, void **at, int version,
                        uint64_t flags, int *found)
{
    void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    (void)version, (void)flags;
    *at = self ? dlsym(self, name) : NULL;
    if (found)
        *found = !*at;
    return *at ? DONE : NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **at, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, at, version, flags, NULL);
}

int cuCtxGetCurrent(void **context)
{
    *context = &thing;
    return DONE;
}

int cuLibraryLoadData(void **library, const void *code, void **options,
                      void **values, unsigned n, void **library_options,
                      void **library_values, unsigned library_n)
{
    (void)options, (void)values, (void)n;
    (void)library_options, (void)library_values, (void)library_n;
    if (memcmp(code, "\177ELF", 4))
        return WRONG;
    *library = &thing;
    return DONE;
}

int cuLibraryUnload(void *library)
{
    return library == &thing ? DONE : WRONG;
}

int cuLibraryGetKernel(void **out, void *library, const char *name)
{
    (void)library;
    strncpy(kernel, name, sizeof kernel - 1);
    *out = &thing;
    return DONE;
}

int cuKernelGetFunction(void **function, void *from)
{
    (void)from;
    *function = &thing;
    return DONE;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return DONE;
}

int cuKernelSetAttribute(int attribute, int value, void *of, int device)
{
    (void)attribute, (void)value, (void)of, (void)device;
    return DONE;
}

int cuModuleLoadData(void **module, const void *code)
{
    return cuLibraryLoadData(module, code, NULL, NULL, 0, NULL, NULL, 0);
}

int cuModuleUnload(void *module)
{
    return module == &thing ? DONE : WRONG;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return cuLibraryGetKernel(function, module, name);
}

// cuDNN asks for these, but does not call them to plan.
#define REFUSED(name)                                                          \
    int name(void);                                                            \
    int name(void)                                                             \
    {                                                                          \
        return WRONG;                                                          \
    }
REFUSED(cuCtxGetLimit)
REFUSED(cuCtxPopCurrent)
REFUSED(cuCtxPushCurrent)
REFUSED(cuDeviceGet)
REFUSED(cuDeviceGetCount)
REFUSED(cuGetErrorName)
REFUSED(cuKernelGetAttribute)
REFUSED(cuLaunchCooperativeKernel)
REFUSED(cuLaunchKernel)
REFUSED(cuLaunchKernelEx)
REFUSED(cuLibraryLoadFromFile)
REFUSED(cuLinkAddData)
REFUSED(cuLinkComplete)
REFUSED(cuLinkCreate)
REFUSED(cuLinkDestroy)
REFUSED(cuOccupancyMaxPotentialClusterSize)
REFUSED(cuStreamGetCtx)
REFUSED(cuTensorMapEncodeIm2col)
REFUSED(cuTensorMapEncodeTiled)
