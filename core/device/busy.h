// busy.h - measures how long each queue of a device is busy in a step.
//
//     compute   [forward, backward .......]        [update]
//     comm              [bucket] [bucket] [bucket]
//     down, up
//     a step    |------------------------------------------|
//
// Code that gives work to a queue records an event before it and one after it.
// The time between them is a stretch. No thread waits for these events: the
// stretches of a step are added up when the device has passed all of them,
// mostly one step later. A stretch begins when the queue reaches its first
// event. So the time that the queue waits before it does not count. The time
// that a collective waits inside it does, and so do gaps in which the host is
// late with the next work.
//
// A device that is not measured has no such events: then these calls cost
// nothing.

#pragma once

#include "device/device.h"

enum {
    // The most stretches of a queue, and steps, that are under way. One more
    // counts as a part of the newest.
    BUSY_STRETCHES = 1024,
    BUSY_STEPS = 4
};

struct busy_step {
    uint64_t ended_ns;          // when busy_step_end() was called: now_ns()
    uint64_t ns;                // from begin to end, by the device's clock
    uint64_t at[DEVICE_QUEUES]; // ns of them in which the queue was busy
};

// Measures this device from now on. 0, or -1 after fail(). busy_close() comes
// before device_close(), and takes a device that is not measured.
int busy_open(struct device *d);
void busy_close(struct device *d);

// To be called before and after work is given to a queue. Stretches of a queue
// do not nest.
void busy_begin(struct device *d, enum device_queue q);
void busy_end(struct device *d, enum device_queue q);

// To be called at the beginning and the end of a step. They record on the
// compute queue.
void busy_step_begin(struct device *d);
void busy_step_end(struct device *d);

// Takes the oldest step that was not taken yet. False if the device has not
// finished it or there is none.
bool busy_take(struct device *d, struct busy_step *out);
