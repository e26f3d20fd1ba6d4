// fake_cupti.c - a fake libcupti.so.13. A test tells it which kernels and
// copies have run.
//
// fake_cupti_ran() writes a record of a kernel or copy, in CUPTI's layout, into
// a buffer of the program. A buffer goes back to the program when it is full or
// flushed. The clock of this library is one second behind the program's. With
// FAKE_CUPTI=busy it says that another program already uses CUPTI.

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KINDS = 16, MULTIPLE_SUBSCRIBERS = 39, BEHIND_NS = 1000000000 };
enum { KERNEL = 10, KERNEL_BYTES = 224, COPY_BYTES = 96 };

typedef void wanted_fn(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void full_fn(void *context, uint32_t stream, uint8_t *buffer,
                     size_t bytes, size_t used);

int cuptiActivityRegisterCallbacks(wanted_fn *wanted, full_fn *full);
int cuptiActivityEnable(uint32_t kind);
int cuptiActivityDisable(uint32_t kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t used, void **record);
int cuptiGetTimestamp(uint64_t *ns);
// kind: 10 for a kernel, 1 for a copy of `bytes` bytes. Times are in now_ns().
void fake_cupti_ran(uint32_t kind, const char *name, uint64_t begin_ns,
                    uint64_t end_ns, uint32_t stream, uint64_t bytes);

static wanted_fn *buffer_wanted;
static full_fn *buffer_full;
static bool enabled[KINDS];
static uint8_t *buffer;
static size_t capacity, used;

int cuptiActivityRegisterCallbacks(wanted_fn *wanted, full_fn *full)
{
    const char *said = getenv("FAKE_CUPTI");
    buffer_wanted = wanted;
    buffer_full = full;
    return said && !strcmp(said, "busy") ? MULTIPLE_SUBSCRIBERS : 0;
}

int cuptiActivityEnable(uint32_t kind)
{
    enabled[kind] = true;
    return 0;
}

int cuptiActivityDisable(uint32_t kind)
{
    enabled[kind] = false;
    return 0;
}

int cuptiGetTimestamp(uint64_t *ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - BEHIND_NS;
    return 0;
}

static void give_back(void)
{
    uint8_t *full = buffer;
    buffer = NULL;
    if (full)
        buffer_full(NULL, 0, full, capacity, used);
}

int cuptiActivityFlushAll(uint32_t flag)
{
    give_back();
    return flag == 1 ? 0 : 1;
}

static size_t bytes_of(uint32_t kind)
{
    return kind == KERNEL ? KERNEL_BYTES : COPY_BYTES;
}

int cuptiActivityGetNextRecord(uint8_t *from, size_t bytes, void **record)
{
    uint8_t *next = from;
    if (*record)
        next = (uint8_t *)*record + bytes_of(*(const uint32_t *)*record);
    if (next >= from + bytes)
        return 12; // CUPTI_ERROR_MAX_LIMIT_REACHED
    *record = next;
    return 0;
}

void fake_cupti_ran(uint32_t kind, const char *name, uint64_t begin_ns,
                    uint64_t end_ns, uint32_t stream, uint64_t bytes)
{
    bool kernel = kind == KERNEL;
    size_t records, size = bytes_of(kind);
    if (!enabled[kind])
        return;
    if (buffer && capacity - used < size)
        give_back();
    if (!buffer) {
        buffer_wanted(&buffer, &capacity, &records);
        if (!buffer || capacity < size || (uintptr_t)buffer % 8)
            abort();
        used = 0;
    }
    uint8_t *r = buffer + used;
    uint64_t times[] = {begin_ns - BEHIND_NS, end_ns - BEHIND_NS};
    memset(r, 0xee, size);
    memcpy(r, &kind, sizeof kind);
    memcpy(r + 16, times, sizeof times);
    memcpy(r + (kernel ? 48 : 40), &stream, sizeof stream);
    if (kernel)
        memcpy(r + 104, &name, sizeof name);
    else {
        r[4] = 2; // to the host
        memcpy(r + 8, &bytes, sizeof bytes);
    }
    used += size;
}
