// busy.h - how long each queue of a device was at work in a step.
//
//     compute   [forward, backward .......]        [update]
//     comm              [bucket] [bucket] [bucket]
//     down, up
//     a step    |------------------------------------------|
//
// Who asks a queue for work puts two events around it: a stretch. Nothing waits
// for them: a step's stretches are added up when the device has passed them
// all, mostly a step later. A stretch begins when its queue gets there, so what
// the queue waits for before it does not count; what a collective waits for
// inside does, and so do gaps where the host asks too slowly.
//
// A device that nobody measures has no meters: then marking costs nothing.

#ifndef DEVICE_BUSY_H
#define DEVICE_BUSY_H

#include "device/device.h"

enum {
    BUSY_STRETCHES = 256, // of a queue, under way at once; the last one grows
    BUSY_STEPS = 4        // likewise
};

struct busy_step {
    uint64_t ended_ns;          // when busy_step_end() was called: now_ns()
    uint64_t ns;                // of the device's clock, from begin to end
    uint64_t at[DEVICE_QUEUES]; // of it, at work
};

// Measure this device from now on. 0, or -1 after fail(). busy_close() comes
// before device_close(), and takes a device that is not measured.
int busy_open(struct device *d);
void busy_close(struct device *d);

// Around what is asked of a queue; stretches of a queue do not nest. 0, or -1
// after fail(), as of all below.
int busy_begin(struct device *d, enum device_queue q);
int busy_end(struct device *d, enum device_queue q);

// Around a step, on the compute queue.
int busy_step_begin(struct device *d);
int busy_step_end(struct device *d);

// The oldest step that has not been taken: 1, or 0 if it is not over yet or
// there is none.
int busy_take(struct device *d, struct busy_step *out);

#endif
