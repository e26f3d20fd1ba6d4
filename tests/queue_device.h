// queue_device.h - a CPU device with asynchronous queues. Each queue has a
// thread, which does the queue's work later. Only the compute queue does its
// work at once, in the calling thread, where following an event means waiting
// for it.
//
// So tests without a GPU find a missing event, a missing wait, or a buffer that
// is used again too early: numbers are wrong, or ThreadSanitizer reports it.

#pragma once

#include "device/device.h"

// Opens the device. Returns 0, or -1 after fail(). The caller closes it with
// device_close().
int queue_device_open(struct device **d);

// Adds fn(ctx) to the work of the queue whose device_handle() is `handle`.
void queue_device_ask(void *handle, void (*fn)(void *ctx), void *ctx);
