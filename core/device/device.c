// device.c - finds a device by its name, and passes calls on to it.

#include "device/device.h"

#include "device/cuda.h"

#include "base/base.h"

#include <string.h>

static const struct device_ops *const table[] = {
    &device_cpu,
#if defined(LOCKSTEP_CUDA)
    &device_cuda,
#endif
};

enum { DEVICES = sizeof table / sizeof table[0] };

int device_open_nth(struct device **out, const char *name, int nth)
{
    char names[64] = "";
    for (int i = 0; i < DEVICES; i++) {
        strcat(strcat(names, " "), table[i]->name);
        if (strcmp(table[i]->name, name))
            continue;
        struct device *d = mem_alloc(1, sizeof *d);
        if (!d)
            return -1;
        d->ops = table[i];
        d->nth = nth;
        if (d->ops->open && d->ops->open(d)) {
            device_close(&d);
            return -1;
        }
        *out = d;
        return 0;
    }
    return fail("device=%s: this build has only%s%s", name, names,
                DEVICES == 1 ? "; try: cmake --preset cuda, and build" : "");
}

int device_open(struct device **out, const char *name)
{
    return device_open_nth(out, name, 0);
}

void device_close(struct device **d)
{
    if (!*d)
        return;
    CHECK(!(*d)->busy);
    if ((*d)->ops->close)
        (*d)->ops->close(*d);
    mem_free(*d);
    *d = NULL;
}

bool device_is_host(const struct device *d)
{
    return d->ops->host;
}

void *device_alloc(struct device *d, size_t n, size_t size)
{
    return d->ops->alloc(d, n, size);
}

void device_free(struct device *d, void *p)
{
    d->ops->free(d, p);
}

void *device_alloc_shared(struct device *d, size_t n, size_t size)
{
    return d->ops->alloc_shared ? d->ops->alloc_shared(d, n, size)
                                : d->ops->alloc(d, n, size);
}

bool device_shared(const struct device *d, const void *p,
                   struct shared_name *name)
{
    return d->ops->shared && d->ops->shared(d, p, name);
}

void *device_host_alloc(struct device *d, size_t n, size_t size)
{
    return d->ops->host_alloc(d, n, size);
}

void device_host_free(struct device *d, void *p)
{
    d->ops->host_free(d, p);
}

void device_copy_on(struct device *d, enum device_queue q, void *dst,
                    const void *src, size_t bytes)
{
    d->ops->copy(d, q, dst, src, bytes);
}

void device_cast_on(struct device *d, enum device_queue q, void *dst,
                    enum dtype to, const void *src, enum dtype from,
                    float scale, size_t n)
{
    CHECK(scale == 1.0f || from == DTYPE_F32);
    d->ops->cast(d, q, dst, to, src, from, scale, n);
}

void device_add_on(struct device *d, enum device_queue q, void *dst,
                   const void *src, enum dtype from, size_t n)
{
    d->ops->add(d, q, dst, src, from, n);
}

void device_add_into_wire(struct device *d, enum device_queue q, void *wire,
                          enum dtype type, const float *acc, size_t n)
{
    d->ops->add_into_wire(d, q, wire, type, acc, n);
}

void device_finish(struct device *d)
{
    if (d->ops->finish)
        d->ops->finish(d);
}

void device_copy(struct device *d, void *dst, const void *src, size_t bytes)
{
    d->ops->copy(d, DEVICE_COMPUTE, dst, src, bytes);
    device_finish(d);
}

static int event_open(struct device *d, struct device_event *e, bool timed)
{
    *e = (struct device_event){0};
    return d->ops->event_open ? d->ops->event_open(d, e, timed) : 0;
}

int device_event_open(struct device *d, struct device_event *e)
{
    return event_open(d, e, false);
}

int device_event_open_timed(struct device *d, struct device_event *e)
{
    return event_open(d, e, true);
}

void device_event_close(struct device *d, struct device_event *e)
{
    if (d->ops->event_close)
        d->ops->event_close(d, e);
    *e = (struct device_event){0};
}

void device_record(struct device *d, struct device_event *e,
                   enum device_queue q)
{
    d->ops->record(d, e, q);
}

void device_follow(struct device *d, enum device_queue q,
                   const struct device_event *e)
{
    if (d->ops->follow)
        d->ops->follow(d, q, e);
}

bool device_reached(struct device *d, const struct device_event *e)
{
    return !d->ops->reached || d->ops->reached(d, e);
}

void device_wait(struct device *d, const struct device_event *e)
{
    if (d->ops->wait)
        d->ops->wait(d, e);
}

uint64_t device_between(struct device *d, const struct device_event *from,
                        const struct device_event *to)
{
    return d->ops->between(d, from, to);
}

void device_profile(struct device *d, bool on)
{
    if (!d->ops->profile)
        return;
    device_finish(d);
    d->ops->profile(d, on);
}

void *device_handle(struct device *d, enum device_queue q)
{
    return d->ops->handle ? d->ops->handle(d, q) : NULL;
}

void device_identity(const struct device *d, unsigned char id[DEVICE_ID])
{
    memset(id, 0, DEVICE_ID);
    if (d->ops->identity)
        d->ops->identity(d, id);
}
