// runtime.cpp - the CUDA runtime: memory, streams, events, one device.
//
// A stream is a list of work. The work is done only when the host waits for it.
// So a program that forgets to wait, or to make one stream wait for another,
// reads numbers that are not written yet. With EMULATED_CUDA_EAGER=1 work is
// done at once. Device memory is protected except while work is done: a host
// that reads or writes it ends with a signal, or with AddressSanitizer's
// report.

#include "tests/emulated_cuda/runtime.h"

#include "base/base.h"
#include "tests/emulated_cuda/address.h"
#include "tests/emulated_cuda/block.h"
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <deque>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

static std::recursive_mutex mutex;
struct entered : std::lock_guard<std::recursive_mutex> {
    entered() : lock_guard(mutex)
    {
    }
};

static thread_local cudaError_t last_error;

// Also remembers cudaErrorNotReady, which the manual exempts: a program that
// clears this error itself is right in both cases.
static cudaError_t report(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorNotReady:
        return "device not ready";
    }
    return "unknown error";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

// ---- memory

// An allocation: whole pages, and a guard page after them. The caller's memory
// ends where the pages end, up to CUDA's alignment.
struct pages {
    char *base;
    size_t bytes; // without the guard page
    void *p;      // the caller's memory
    size_t asked; // bytes of it
};

static constexpr size_t DEVICE_MEMORY = (size_t)8 << 30, ALIGN = 256;

static std::map<void *, pages> device_memory;
static size_t memory_used;
static int working; // depth of nested work; memory is accessible while > 0

static size_t rounded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void set_access(const pages &m, bool allowed)
{
    int prot = allowed ? PROT_READ | PROT_WRITE : PROT_NONE;
    CHECK(mprotect(m.base, m.bytes, prot) == 0);
}

struct work {
    work()
    {
        if (working++ == 0)
            for (auto &m : device_memory)
                set_access(m.second, true);
    }
    ~work()
    {
        if (--working == 0)
            for (auto &m : device_memory)
                set_access(m.second, false);
    }
};

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    entered here;
    if (bytes > DEVICE_MEMORY - memory_used)
        return report(cudaErrorMemoryAllocation);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pages m = {nullptr, rounded(bytes, page), nullptr, bytes};
    void *base = mmap(nullptr, m.bytes + page, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return report(cudaErrorMemoryAllocation);
    m.base = (char *)base;
    m.p = m.base + m.bytes - rounded(bytes, ALIGN);
    madvise(base, m.bytes, MADV_HUGEPAGE); // fewer pages to protect, if it can
    set_access(m, true);
    memset(m.p, 0xff, bytes); // new memory may have any contents
    emulated::poison(m.base, m.bytes);
    emulated::unpoison(m.p, bytes);
    set_access(m, working > 0);
    device_memory[m.p] = m;
    memory_used += m.bytes;
    *p = m.p;
    return cudaSuccess;
}

size_t emulated::allocated(const void *p)
{
    auto next = device_memory.upper_bound(const_cast<void *>(p));
    if (next == device_memory.begin())
        return 0;
    const pages &m = std::prev(next)->second;
    size_t before = (size_t)((const char *)p - (const char *)m.p);
    return before < m.asked ? m.asked - before : 0;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    entered here;
    *available = DEVICE_MEMORY - memory_used;
    *total = DEVICE_MEMORY;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    *p = aligned_alloc(ALIGN, rounded(bytes, ALIGN));
    return report(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}

// ---- streams: work in order, and how much of it is done

struct CUstream_st {
    std::deque<std::function<void()>> asked;
    uint64_t count, done; // work ever put into the stream, work done
};

static std::vector<cudaStream_t> streams;
static int spins;

int emulated_cuda_spins(void)
{
    entered here;
    return spins;
}

static void do_until(cudaStream_t s, uint64_t count)
{
    if (s->done >= count)
        return; // to open memory is a call of the system for each allocation
    work opened;
    while (s->done < count) {
        std::function<void()> next = std::move(s->asked.front());
        s->asked.pop_front();
        s->done++;
        next();
    }
}

static void do_all()
{
    for (cudaStream_t s : streams)
        do_until(s, s->count);
}

void emulated::enqueue(void *stream, std::function<void()> what)
{
    entered here;
    cudaStream_t s = (cudaStream_t)stream;
    const char *eager = getenv("EMULATED_CUDA_EAGER");
    s->asked.push_back(std::move(what));
    s->count++;
    if (eager && *eager == '1')
        do_until(s, s->count);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned, int)
{
    entered here;
    *s = new CUstream_st();
    streams.push_back(*s);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    entered here;
    do_until(s, s->count);
    for (size_t i = 0; i < streams.size(); i++)
        if (streams[i] == s)
            streams.erase(streams.begin() + (long)i);
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    entered here;
    spins++;
    do_until(s, s->count);
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    entered here;
    if (!p)
        return cudaSuccess;
    do_all();
    auto found = device_memory.find(p);
    if (found == device_memory.end())
        return report(cudaErrorInvalidValue);
    pages m = found->second;
    device_memory.erase(found);
    memory_used -= m.bytes;
    emulated::unpoison(m.base, m.bytes);
    munmap(m.base, m.bytes + (size_t)sysconf(_SC_PAGESIZE));
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    entered here;
    do_all();
    free(p);
    return cudaSuccess;
}

// ---- records of kernels and copies, for tests/fake_cupti.c if it is loaded

enum { RAN_COPY = 1, RAN_KERNEL = 10 };

static void record_for_cupti(uint32_t kind, const char *name, uint64_t began,
                             void *stream, size_t bytes)
{
    typedef void ran(uint32_t, const char *, uint64_t, uint64_t, uint32_t,
                     uint64_t);
    void *cupti = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
    if (!cupti)
        return;
    ran *fn = (ran *)dlsym(cupti, "fake_cupti_ran");
    uint32_t nth = 0;
    while (nth < streams.size() && streams[nth] != stream)
        nth++;
    if (fn)
        fn(kind, name, began, now_ns(), nth + 1, bytes);
    dlclose(cupti);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            enum cudaMemcpyKind, cudaStream_t s)
{
    emulated::enqueue(s, [=] {
        uint64_t began = now_ns();
        memcpy(dst, src, bytes);
        record_for_cupti(RAN_COPY, nullptr, began, s, bytes);
    });
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src,
                              size_t src_pitch, size_t bytes, size_t rows,
                              enum cudaMemcpyKind, cudaStream_t s)
{
    if (bytes > dst_pitch || bytes > src_pitch)
        return cudaErrorInvalidValue;
    emulated::enqueue(s, [=] {
        uint64_t began = now_ns();
        for (size_t r = 0; r < rows; r++)
            memcpy((char *)dst + r * dst_pitch,
                   (const char *)src + r * src_pitch, bytes);
        record_for_cupti(RAN_COPY, nullptr, began, s, bytes * rows);
    });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    emulated::enqueue(s, [=] { memset(p, value, bytes); });
    return cudaSuccess;
}

// ---- kernels

static bool profiling;
static long profiled;

void emulated::ask(const char *name, const struct shape &s,
                   std::function<void()> thread)
{
    size_t threads = (size_t)s.block.x * s.block.y * s.block.z;
    size_t blocks = (size_t)s.grid.x * s.grid.y * s.grid.z;
    if (!threads || threads > 1024 || s.block.z > 64 || !blocks ||
        s.grid.x > 0x7fffffff || s.grid.y > 65535 || s.grid.z > 65535) {
        report(cudaErrorInvalidConfiguration);
        return;
    }
    if (s.shared > 48 << 10) { // more needs cudaFuncSetAttribute()
        report(cudaErrorInvalidValue);
        return;
    }
    enqueue(s.stream, [=] {
        uint64_t began = now_ns();
        profiled += profiling;
        run_grid(name, s, thread);
        record_for_cupti(RAN_KERNEL, name, began, s.stream, 0);
    });
}

// ---- the profiler: counts the kernels that run while it records

long emulated_cuda_profiled(void)
{
    entered here;
    return profiled;
}

cudaError_t cudaProfilerStart(void)
{
    entered here;
    profiling = true;
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    entered here;
    profiling = false;
    log_line("emulated CUDA: %ld kernels were profiled", profiled);
    return cudaSuccess;
}

// ---- the clock, and the algorithm of the last product

static uint64_t passed_ns;
static int algorithm, target;
static bool algorithm_fused;

void emulated::pass(uint64_t ns)
{
    entered here;
    passed_ns += ns;
}

void emulated::product(int nth, bool fused, int multiprocessors)
{
    entered here;
    algorithm = nth;
    target = multiprocessors;
    algorithm_fused = fused;
}

int emulated_cuda_algorithm(bool *fused)
{
    entered here;
    *fused = algorithm_fused;
    return algorithm;
}

int emulated_cuda_target(void)
{
    entered here;
    return target;
}

// ---- events: the number of the last record, and of the last one reached

struct mark {
    uint64_t asked, reached;
    uint64_t ns;
    cudaStream_t stream; // of the last record
    uint64_t count;      // work of that stream up to the record
};

struct CUevent_st {
    std::shared_ptr<struct mark>
        to; // outlives the event, for streams that wait
    unsigned flags;
};

static void reach(const mark &m, uint64_t asked)
{
    if (m.reached < asked)
        do_until(m.stream, m.count);
    CHECK(m.reached >= asked);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
    *e = new CUevent_st{std::make_shared<mark>(), flags};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    entered here;
    std::shared_ptr<mark> m = e->to;
    uint64_t nth = ++m->asked;
    m->stream = s;
    m->count = s->count + 1;
    emulated::enqueue(s, [m, nth] {
        m->ns = now_ns() + passed_ns;
        m->reached = nth;
    });
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    entered here;
    std::shared_ptr<mark> m = e->to;
    mark then = *m; // a later record does not count
    if (then.asked)
        emulated::enqueue(s, [m, then] {
            if (m->reached < then.asked)
                do_until(then.stream, then.count);
        });
    return cudaSuccess;
}

// If the event is not reached, does one piece of the stream's work first.
cudaError_t cudaEventQuery(cudaEvent_t e)
{
    entered here;
    const mark &m = *e->to;
    if (m.reached == m.asked)
        return cudaSuccess;
    do_until(m.stream, m.stream->done + 1);
    return report(m.reached == m.asked ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    entered here;
    spins += !(e->flags & cudaEventBlockingSync);
    reach(*e->to, e->to->asked);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    entered here;
    const mark &a = *from->to, &b = *to->to;
    if ((from->flags | to->flags) & cudaEventDisableTiming)
        return report(cudaErrorInvalidResourceHandle);
    if (!a.asked || !b.asked)
        return report(cudaErrorInvalidValue);
    if (a.reached < a.asked || b.reached < b.asked)
        return report(cudaErrorNotReady);
    *ms = (float)((double)(int64_t)(b.ns - a.ns) / 1e6);
    return cudaSuccess;
}

// ---- the device

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *devices = getenv("EMULATED_CUDA_DEVICES");
    *count = devices ? atoi(devices) : 1;
    return report(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    int count = 0;
    cudaGetDeviceCount(&count);
    return report(device < count ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    *prop = {};
    prop->major = EMULATED_CAPABILITY / 100;
    prop->minor = EMULATED_CAPABILITY / 10 % 10;
    prop->multiProcessorCount = 4;
    for (int i = 0; i < 16; i++) // the first is the GPU of tests/fake_nvml.c
        prop->uuid.bytes[i] = (char)(0x11 * i - (i == 15 ? device : 0));
    snprintf(prop->name, sizeof prop->name, "emulated GPU %d", device);
    return cudaSuccess;
}

// A memory of ten gigabytes a second: 1 GHz, 40 bits, two transfers a cycle.
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int)
{
    *value = attr == cudaDevAttrMemoryClockRate ? 1000 * 1000 : 40;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}
