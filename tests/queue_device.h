// queue_device.h - a CPU device with real queues: what it is asked of any queue
// but compute's is done later, by a thread of that queue.
//
// So a missing event, a buffer used again too early or a wait forgotten shows
// as wrong numbers (or to ThreadSanitizer), with no GPU at hand. Compute's
// queue is the calling thread: to follow an event there is to wait for it.

#ifndef TESTS_QUEUE_DEVICE_H
#define TESTS_QUEUE_DEVICE_H

#include "device/device.h"

// 0, or -1 after fail(). device_close() closes it.
int queue_device_open(struct device **d);

// Do fn(ctx) on the queue that device_handle() gave as `handle`, in its turn.
void queue_device_ask(void *handle, void (*fn)(void *ctx), void *ctx);

#endif
