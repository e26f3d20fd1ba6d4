// cpu.c - the device that every machine has: host memory and vector.c.
//
// It has no queues: the calling thread does the work at once. An event is a
// reading of the clock.

#include "device/device.h"
#include "device/shared.h"
#include "device/vector.h"

#include "base/base.h"

#include <string.h>

struct block { // shared memory that is not freed yet
    void *at;
    struct shared_name name;
    struct block *next;
};

static void *cpu_alloc(struct device *d, size_t n, size_t size)
{
    (void)d;
    return mem_alloc(n, size);
}

static void *cpu_alloc_shared(struct device *d, size_t n, size_t size)
{
    size_t bytes;
    struct block *b = mem_alloc(1, sizeof *b);
    if (!b)
        return NULL;
    if (__builtin_mul_overflow(n, size, &bytes))
        fail("memory: %zu objects of %zu bytes are too many", n, size);
    else
        b->at = shared_alloc(bytes, &b->name);
    if (!b->at) {
        mem_free(b);
        return NULL;
    }
    b->next = d->blocks;
    d->blocks = b;
    return b->at;
}

static bool cpu_shared(const struct device *d, const void *p,
                       struct shared_name *name)
{
    for (const struct block *b = d->blocks; b; b = b->next)
        if (b->at == p) {
            *name = b->name;
            return true;
        }
    return false;
}

static void cpu_free(struct device *d, void *p)
{
    struct block **at = &d->blocks, *b;
    while (*at && (*at)->at != p)
        at = &(*at)->next;
    if (!p || !*at) {
        mem_free(p);
        return;
    }
    b = *at;
    *at = b->next;
    shared_free(b->at, &b->name);
    mem_free(b);
}

static void cpu_close(struct device *d)
{
    for (struct block *b; (b = d->blocks);)
        cpu_free(d, b->at);
}

static void cpu_copy(struct device *d, enum device_queue q, void *dst,
                     const void *src, size_t bytes)
{
    (void)d, (void)q;
    memmove(dst, src, bytes);
}

static void cpu_cast(struct device *d, enum device_queue q, void *dst,
                     enum dtype to, const void *src, enum dtype from,
                     float scale, size_t n)
{
    (void)d, (void)q;
    if (scale == 1.0f)
        vector_cast(dst, to, src, from, n);
    else
        vector_cast_scaled(dst, to, src, scale, n);
}

static void cpu_add(struct device *d, enum device_queue q, void *dst,
                    const void *src, enum dtype from, size_t n)
{
    (void)d, (void)q;
    if (from == DTYPE_F64)
        vector_add_doubles(dst, src, n);
    else
        vector_add(dst, src, from, n);
}

static void cpu_add_into_wire(struct device *d, enum device_queue q, void *wire,
                              enum dtype type, const float *acc, size_t n)
{
    (void)d, (void)q;
    vector_add_into_wire(wire, type, acc, n);
}

static void cpu_record(struct device *d, struct device_event *e,
                       enum device_queue q)
{
    (void)d, (void)q;
    e->ns = now_ns();
}

static uint64_t cpu_between(struct device *d, const struct device_event *from,
                            const struct device_event *to)
{
    (void)d;
    return to->ns - from->ns;
}

const struct device_ops device_cpu = {
    .name = "cpu",
    .host = true,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .alloc_shared = cpu_alloc_shared,
    .shared = cpu_shared,
    .host_alloc = cpu_alloc,
    .host_free = cpu_free,
    .copy = cpu_copy,
    .cast = cpu_cast,
    .add = cpu_add,
    .add_into_wire = cpu_add_into_wire,
    .record = cpu_record,
    .between = cpu_between,
    .close = cpu_close,
};
