// device.h - where parameters and gradients live, and the few things that the
// layers below the model do to them: allocate, copy, convert, add, wait.
//
// A device has queues. What is asked of one queue happens in order; different
// queues run beside each other until an event ties them:
//
//     compute  ---- backward of bucket 0 --*-- backward of bucket 1 ----
//                                          | event: device_record, _follow
//     down                                 *-- copy bucket 0 to the host --
//
// The CPU device does its work before the call returns, so there every event
// has happened when it is recorded, and all of this costs nothing.

#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include "base/half.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct block;
struct busy;
struct device;
struct shared_name;

enum { DEVICE_ID = 16 }; // bytes

enum device_queue {
    DEVICE_COMPUTE, // the model and the update
    DEVICE_COMM,    // collectives between devices
    DEVICE_DOWN,    // copies to the host
    DEVICE_UP,      // copies from the host
    DEVICE_QUEUES
};

// A mark in a queue, made by device_record(). May be recorded again.
struct device_event {
    void *handle; // of a device with queues
    uint64_t ns;  // of the CPU device: when it was recorded
};

struct device_ops {
    const char *name; // device=NAME
    bool host;        // its memory is the host's: the CPU may read it
    int (*open)(struct device *d);
    void *(*alloc)(struct device *d, size_t n, size_t size);
    void (*free)(struct device *d, void *p);
    void *(*alloc_shared)(struct device *d, size_t n, size_t size); // optional
    bool (*shared)(const struct device *d, const void *p,
                   struct shared_name *name);
    void *(*host_alloc)(struct device *d, size_t n, size_t size);
    void (*host_free)(struct device *d, void *p);
    int (*copy)(struct device *d, enum device_queue q, void *dst,
                const void *src, size_t bytes);
    int (*cast)(struct device *d, enum device_queue q, void *dst, enum dtype to,
                const void *src, enum dtype from, float scale, size_t n);
    int (*add)(struct device *d, enum device_queue q, void *dst,
               const void *src, enum dtype from, size_t n);
    int (*add_into_wire)(struct device *d, enum device_queue q, void *wire,
                         enum dtype type, const float *acc, size_t n);
    int (*event_open)(struct device *d, struct device_event *e, bool timed);
    void (*event_close)(struct device *d, struct device_event *e);
    int (*record)(struct device *d, struct device_event *e,
                  enum device_queue q);
    int (*follow)(struct device *d, enum device_queue q,
                  const struct device_event *e);
    int (*reached)(struct device *d, const struct device_event *e);
    int (*wait)(struct device *d, const struct device_event *e);
    int (*between)(struct device *d, const struct device_event *from,
                   const struct device_event *to, uint64_t *ns);
    int (*finish)(struct device *d);
    int (*profile)(struct device *d, bool on); // optional
    void *(*handle)(struct device *d, enum device_queue q);
    void (*identity)(const struct device *d, unsigned char id[DEVICE_ID]);
    void (*close)(struct device *d); // optional; must accept zeroed state
};

struct device {
    const struct device_ops *ops;
    int nth; // which of the machine's devices of this kind
    void *state;
    struct block *blocks; // shared memory that is not freed yet (cpu.c)
    struct busy *busy;    // meters, while somebody measures (busy.h)
};

extern const struct device_ops device_cpu;

// Open the device called `name` ("cpu", "cuda"): the nth of its kind, counted
// round where there are fewer. 0, or -1 after fail().
int device_open(struct device **d, const char *name);
int device_open_nth(struct device **d, const char *name, int nth);
void device_close(struct device **d);

// True if the CPU may read and write what device_alloc() gives.
bool device_is_host(const struct device *d);

// Zeroed memory for n objects of `size` bytes, 64-byte aligned; NULL after
// fail(). device_free() takes NULL.
void *device_alloc(struct device *d, size_t n, size_t size);
void device_free(struct device *d, void *p);

// The same, where the device can, in memory that other processes of this host
// can map (shared.h); device_shared(): whether p is such, and where it is.
void *device_alloc_shared(struct device *d, size_t n, size_t size);
bool device_shared(const struct device *d, const void *p,
                   struct shared_name *name);

// The same in host memory that the device can copy from and to while it
// computes (pinned).
void *device_host_alloc(struct device *d, size_t n, size_t size);
void device_host_free(struct device *d, void *p);

// Copy bytes, from or to host memory or within the device. Both must stay as
// they are until the queue has done it.
int device_copy_on(struct device *d, enum device_queue q, void *dst,
                   const void *src, size_t bytes);

// dst[0..n) = src[0..n) * scale, each in its number format, rounded once to
// nearest even; dst[0..n) += src[0..n), where dst is of fp32, or of doubles if
// src is; and one hop of a ring: wire = round(acc + wire), the sum in fp32. A
// scale other than 1 only from fp32; no casts of doubles.
int device_cast_on(struct device *d, enum device_queue q, void *dst,
                   enum dtype to, const void *src, enum dtype from, float scale,
                   size_t n);
int device_add_on(struct device *d, enum device_queue q, void *dst,
                  const void *src, enum dtype from, size_t n);
int device_add_into_wire(struct device *d, enum device_queue q, void *wire,
                         enum dtype type, const float *acc, size_t n);

// The same on the compute queue; device_copy() has copied when it returns.
int device_copy(struct device *d, void *dst, const void *src, size_t bytes);
int device_cast(struct device *d, void *dst, enum dtype to, const void *src,
                enum dtype from, size_t n);

// An event is opened once and recorded often. record: it happens when the
// queue has done all it was asked so far. follow: what is asked of q from now
// on waits for it (at once if it was never recorded). reached: 1 when it has
// happened, 0 when not yet, -1 after fail(). wait: the calling thread waits.
// between: the time from one event to the other, both reached, which must have
// been opened with open_timed: to note the time costs the device something.
int device_event_open(struct device *d, struct device_event *e);
int device_event_open_timed(struct device *d, struct device_event *e);
void device_event_close(struct device *d, struct device_event *e);
int device_record(struct device *d, struct device_event *e,
                  enum device_queue q);
int device_follow(struct device *d, enum device_queue q,
                  const struct device_event *e);
int device_reached(struct device *d, const struct device_event *e);
int device_wait(struct device *d, const struct device_event *e);
int device_between(struct device *d, const struct device_event *from,
                   const struct device_event *to, uint64_t *ns);

// Wait until everything asked for so far, of every queue, has been done. 0, or
// -1 after fail().
int device_finish(struct device *d);

// A profiler that listens begins or ends to record, when all queues have done
// what they were asked. Devices without one do nothing.
int device_profile(struct device *d, bool on);

// The queue as the device's own libraries know it (a cudaStream_t); NULL where
// there are none.
void *device_handle(struct device *d, enum device_queue q);

// What no two devices of any machine share, however often they are opened. On
// the CPU every open device counts as one.
void device_identity(const struct device *d, unsigned char id[DEVICE_ID]);

#ifdef __cplusplus
}
#endif

#endif
