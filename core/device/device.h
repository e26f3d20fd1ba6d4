// device.h - memory for parameters and gradients, on the CPU or a GPU, and the
// few operations on it: allocate, copy, convert, add, wait.
//
// A device has queues. The operations of one queue happen in order. Different
// queues run at the same time, unless an event makes one wait for the other:
//
//     compute  ---- backward of bucket 0 --*-- backward of bucket 1 ----
//                                          | event: device_record, _follow
//     down                                 *-- copy bucket 0 to the host --
//
// The CPU device does its work before the call returns. So every event there
// has happened when it is recorded, and queues and events cost nothing.

#pragma once

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
    uint64_t ns;  // CPU device: when it was recorded
};

struct device_ops {
    const char *name; // device=NAME
    bool host;        // its memory is the host's: the CPU may read it
    int (*open)(struct device *d); // optional
    void *(*alloc)(struct device *d, size_t n, size_t size);
    void (*free)(struct device *d, void *p);
    void *(*alloc_shared)(struct device *d, size_t n, size_t size); // optional
    bool (*shared)(const struct device *d, const void *p,
                   struct shared_name *name);
    void *(*host_alloc)(struct device *d, size_t n, size_t size);
    void (*host_free)(struct device *d, void *p);
    void (*copy)(struct device *d, enum device_queue q, void *dst,
                 const void *src, size_t bytes);
    void (*cast)(struct device *d, enum device_queue q, void *dst,
                 enum dtype to, const void *src, enum dtype from, float scale,
                 size_t n);
    void (*add)(struct device *d, enum device_queue q, void *dst,
                const void *src, enum dtype from, size_t n);
    void (*add_into_wire)(struct device *d, enum device_queue q, void *wire,
                          enum dtype type, const float *acc, size_t n);
    void (*record)(struct device *d, struct device_event *e,
                   enum device_queue q);
    uint64_t (*between)(struct device *d, const struct device_event *from,
                        const struct device_event *to);
    void (*close)(struct device *d); // optional; must accept zeroed state
    // Only of a device with queues. event_open() gets a zeroed event.
    int (*event_open)(struct device *d, struct device_event *e, bool timed);
    void (*event_close)(struct device *d, struct device_event *e);
    void (*follow)(struct device *d, enum device_queue q,
                   const struct device_event *e);
    bool (*reached)(struct device *d, const struct device_event *e);
    void (*wait)(struct device *d, const struct device_event *e);
    void (*finish)(struct device *d);
    void (*profile)(struct device *d, bool on);
    void *(*handle)(struct device *d, enum device_queue q);
    void (*identity)(const struct device *d, unsigned char id[DEVICE_ID]);
};

struct device {
    const struct device_ops *ops;
    int nth; // which of the machine's devices of this kind
    void *state;
    struct block *blocks; // shared memory that is not freed yet (cpu.c)
    struct busy *busy;    // events, while it is measured (busy.h)
};

extern const struct device_ops device_cpu;

// Opens the device called `name` ("cpu", "cuda"), number `nth` of its kind,
// modulo the number of them; device_open() opens number 0. 0, or -1 after
// fail().
int device_open(struct device **d, const char *name);
int device_open_nth(struct device **d, const char *name, int nth);
void device_close(struct device **d);

// True if the CPU may read and write what device_alloc() gives.
bool device_is_host(const struct device *d);

// Zeroed memory for n objects of `size` bytes, 64-byte aligned; NULL after
// fail(). device_free() frees it, and takes NULL.
void *device_alloc(struct device *d, size_t n, size_t size);
void device_free(struct device *d, void *p);

// The same, if the device can, in memory that other processes of this host can
// map (shared.h). device_shared(): whether p is such memory; then *name is its
// place.
void *device_alloc_shared(struct device *d, size_t n, size_t size);
bool device_shared(const struct device *d, const void *p,
                   struct shared_name *name);

// Zeroed host memory that the device can copy from and to while it computes
// (pinned memory). NULL after fail().
void *device_host_alloc(struct device *d, size_t n, size_t size);
void device_host_free(struct device *d, void *p);

// What follows cannot fail, but for opening an event: an error of the device
// stops the program (CU()).

// Copies bytes from host memory to the device, back, or within the device. The
// caller must not change or free source and destination until the queue has
// done the copy.
void device_copy_on(struct device *d, enum device_queue q, void *dst,
                    const void *src, size_t bytes);

// These give work to queue q.
// - cast: dst[0..n) = src[0..n) * scale, each in its number format, rounded
//   once to nearest even. A scale other than 1 requires a src of fp32. Doubles
//   cannot be cast.
// - add: dst[0..n) += src[0..n). dst is of fp32, or of doubles if src is.
// - add_into_wire: wire = round(acc + wire), one hop of a ring. The sum is in
//   fp32.
void device_cast_on(struct device *d, enum device_queue q, void *dst,
                    enum dtype to, const void *src, enum dtype from,
                    float scale, size_t n);
void device_add_on(struct device *d, enum device_queue q, void *dst,
                   const void *src, enum dtype from, size_t n);
void device_add_into_wire(struct device *d, enum device_queue q, void *wire,
                          enum dtype type, const float *acc, size_t n);

// Copies on the compute queue, and has copied when it returns.
void device_copy(struct device *d, void *dst, const void *src, size_t bytes);

// An event is opened once and recorded often. Opening it returns 0, or -1 after
// fail().
// - record: it happens when the queue has done all the work that it has so far.
// - follow: later work of q waits for it, not at all if it was never recorded.
// - reached: whether it has happened.
// - wait: the calling thread waits for it.
// - between: the time from one event to another, in ns. Both have been reached,
//   and were opened with device_event_open_timed(). Other events have no time,
//   since taking it costs the device something.
int device_event_open(struct device *d, struct device_event *e);
int device_event_open_timed(struct device *d, struct device_event *e);
void device_event_close(struct device *d, struct device_event *e);
void device_record(struct device *d, struct device_event *e,
                   enum device_queue q);
void device_follow(struct device *d, enum device_queue q,
                   const struct device_event *e);
bool device_reached(struct device *d, const struct device_event *e);
void device_wait(struct device *d, const struct device_event *e);
uint64_t device_between(struct device *d, const struct device_event *from,
                        const struct device_event *to);

// Waits until all queues have done all the work that they have so far.
void device_finish(struct device *d);

// Waits as device_finish() does. Then tells an attached profiler to begin
// recording (`on`) or to end it. Does nothing on a device without profilers.
void device_profile(struct device *d, bool on);

// The queue as the device's own libraries know it (a cudaStream_t); NULL if the
// device has none.
void *device_handle(struct device *d, enum device_queue q);

// Writes an id that differs between all devices of all machines, and is the
// same each time that the device is opened; zeros for a CPU.
void device_identity(const struct device *d, unsigned char id[DEVICE_ID]);

#ifdef __cplusplus
}
#endif
