// cuda.c - one NVIDIA GPU: its memory, four streams, events between them.
//
// Calls that a setting can make fail (no GPU, no memory) end in fail(). Other
// calls can only fail because of a broken device or a bug of ours: they end in
// CU().

#include "device/cuda.h"

#include "base/base.h"

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda {
    cudaStream_t streams[DEVICE_QUEUES];
    struct cudaDeviceProp prop;
};

void cuda_check(int status, const char *file, int line, const char *call)
{
    if (status == cudaSuccess)
        return;
    log_line("%s:%d: %s: %s", file, line, call,
             cudaGetErrorString((cudaError_t)status));
    abort(); // so the launcher sees a lost rank and stops the others
}

static cudaStream_t stream_of(const struct device *d, enum device_queue q)
{
    const struct cuda *c = d->state;
    return c->streams[q];
}

// The first call of the runtime: it fails on a machine without a usable GPU.
static int count_devices(int *count)
{
    cudaError_t status = cudaGetDeviceCount(count);
    if (status != cudaSuccess)
        return fail("device=cuda: %s; try: device=cpu",
                    cudaGetErrorString(status));
    if (*count < 1)
        return fail("device=cuda: this machine shows no GPU; try: device=cpu, "
                    "or look at CUDA_VISIBLE_DEVICES");
    return 0;
}

static int cuda_open(struct device *d)
{
    int count = 0, device;
    if (count_devices(&count))
        return -1;
    struct cuda *c = mem_alloc(1, sizeof *c);
    if (!c)
        return -1;
    d->state = c;
    device = d->nth % count;
    cudaError_t status = cudaSetDevice(device);
    if (status == cudaSuccess)
        status = cudaGetDeviceProperties(&c->prop, device);
    if (status != cudaSuccess)
        return fail("device=cuda: GPU %d of %d: %s", device, count,
                    cudaGetErrorString(status));
    d->nth = device;
    // Communication has priority: a bucket that is sent should not wait for
    // backward.
    int low = 0, high = 0;
    CU(cudaDeviceGetStreamPriorityRange(&low, &high));
    for (int q = 0; q < DEVICE_QUEUES; q++)
        CU(cudaStreamCreateWithPriority(&c->streams[q], cudaStreamNonBlocking,
                                        q == DEVICE_COMPUTE ? low : high));
    return 0;
}

static void cuda_close(struct device *d)
{
    struct cuda *c = d->state;
    if (!c)
        return;
    for (int q = 0; q < DEVICE_QUEUES; q++)
        if (c->streams[q])
            CU(cudaStreamDestroy(c->streams[q]));
    mem_free(c);
    d->state = NULL;
}

static int check_product(size_t n, size_t size, size_t *bytes)
{
    if (__builtin_mul_overflow(n, size, bytes))
        return fail("memory: %zu objects of %zu bytes are too many", n, size);
    if (*bytes == 0)
        *bytes = 1; // zero bytes also give a pointer, as on the CPU
    return 0;
}

static void *cuda_alloc(struct device *d, size_t n, size_t size)
{
    void *p = NULL;
    size_t bytes;
    if (check_product(n, size, &bytes))
        return NULL;
    cudaError_t status = cudaMalloc(&p, bytes);
    if (status != cudaSuccess) {
        size_t available = 0, total = 0;
        char need[32], have[32];
        cudaGetLastError(); // clears the error: it is handled here
        if (cudaMemGetInfo(&available, &total) != cudaSuccess)
            cudaGetLastError();
        fail("memory of GPU %d: %s more are needed, %s are left: %s; try: a "
             "smaller batch, context or model",
             d->nth, mem_text(need, bytes), mem_text(have, available),
             cudaGetErrorString(status));
        return NULL;
    }
    CU(cudaMemsetAsync(p, 0, bytes, stream_of(d, DEVICE_COMPUTE)));
    CU(cudaStreamSynchronize(stream_of(d, DEVICE_COMPUTE)));
    return p;
}

static void cuda_free(struct device *d, void *p)
{
    (void)d;
    CU(cudaFree(p)); // waits for kernels that still use it
}

static void *cuda_host_alloc(struct device *d, size_t n, size_t size)
{
    (void)d;
    void *p = NULL;
    size_t bytes;
    if (check_product(n, size, &bytes))
        return NULL;
    cudaError_t status = cudaHostAlloc(&p, bytes, cudaHostAllocPortable);
    if (status != cudaSuccess) {
        char need[32];
        cudaGetLastError();
        fail("memory: %s of pinned host memory: %s", mem_text(need, bytes),
             cudaGetErrorString(status));
        return NULL;
    }
    memset(p, 0, bytes);
    return p;
}

static void cuda_host_free(struct device *d, void *p)
{
    (void)d;
    CU(cudaFreeHost(p));
}

static void cuda_copy(struct device *d, enum device_queue q, void *dst,
                      const void *src, size_t bytes)
{
    CU(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream_of(d, q)));
}

static int cuda_event_open(struct device *d, struct device_event *e, bool timed)
{
    (void)d;
    cudaEvent_t event = NULL;
    unsigned flags = timed ? 0 : cudaEventDisableTiming;
    // A waiting thread sleeps, since servers and other workers need the cores.
    // The device does not become idle: its queue has more work.
    cudaError_t status =
        cudaEventCreateWithFlags(&event, flags | cudaEventBlockingSync);
    if (status != cudaSuccess)
        return fail("device=cuda: event: %s", cudaGetErrorString(status));
    e->handle = event;
    return 0;
}

static void cuda_event_close(struct device *d, struct device_event *e)
{
    (void)d;
    if (e->handle)
        CU(cudaEventDestroy(e->handle));
}

static void cuda_record(struct device *d, struct device_event *e,
                        enum device_queue q)
{
    CU(cudaEventRecord(e->handle, stream_of(d, q)));
}

static void cuda_follow(struct device *d, enum device_queue q,
                        const struct device_event *e)
{
    CU(cudaStreamWaitEvent(stream_of(d, q), e->handle, 0));
}

static bool cuda_reached(struct device *d, const struct device_event *e)
{
    (void)d;
    cudaError_t status = cudaEventQuery(e->handle);
    if (status == cudaErrorNotReady) {
        cudaGetLastError(); // clears it, or the next launch would report it
        return false;
    }
    CU(status);
    return true;
}

static void cuda_wait(struct device *d, const struct device_event *e)
{
    (void)d;
    CU(cudaEventSynchronize(e->handle));
}

static uint64_t cuda_between(struct device *d, const struct device_event *from,
                             const struct device_event *to)
{
    (void)d;
    float ms = 0;
    CU(cudaEventElapsedTime(&ms, from->handle, to->handle));
    return ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
}

static void cuda_finish(struct device *d)
{
    for (int q = 0; q < DEVICE_QUEUES; q++)
        CU(cudaStreamSynchronize(stream_of(d, (enum device_queue)q)));
}

static void cuda_profile(struct device *d, bool on)
{
    (void)d;
    CU(on ? cudaProfilerStart() : cudaProfilerStop());
}

static void *cuda_handle(struct device *d, enum device_queue q)
{
    return stream_of(d, q);
}

int cuda_capability(const struct device *d)
{
    const struct cuda *c = d->state;
    return c->prop.major * 10 + c->prop.minor;
}

int cuda_multiprocessors(const struct device *d)
{
    const struct cuda *c = d->state;
    return c->prop.multiProcessorCount;
}

const char *cuda_name(const struct device *d)
{
    const struct cuda *c = d->state;
    return c->prop.name;
}

// Memory moves two bits on each wire in each clock cycle (double data rate).
// The bus width is in bits, the clock in kHz.
double cuda_bandwidth(const struct device *d)
{
    int khz = 0, bits = 0;
    if (cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, d->nth) ||
        cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, d->nth))
        return 0;
    return 2.0 * khz * 1e3 * bits / 8;
}

static void cuda_identity(const struct device *d, unsigned char id[DEVICE_ID])
{
    const struct cuda *c = d->state;
    memcpy(id, c->prop.uuid.bytes, DEVICE_ID);
}

const struct device_ops device_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .copy = cuda_copy,
    .cast = cuda_cast,
    .add = cuda_add,
    .add_into_wire = cuda_add_into_wire,
    .event_open = cuda_event_open,
    .event_close = cuda_event_close,
    .record = cuda_record,
    .follow = cuda_follow,
    .reached = cuda_reached,
    .wait = cuda_wait,
    .between = cuda_between,
    .finish = cuda_finish,
    .profile = cuda_profile,
    .handle = cuda_handle,
    .identity = cuda_identity,
    .close = cuda_close,
};
