// nccl.cpp - the streams of the emulated GPU as queues of tests/fake_nccl.c.

#include "runtime.h"

extern "C" {
#include "tests/queue_device.h"
}

void queue_device_ask(void *handle, void (*fn)(void *ctx), void *ctx)
{
    emulated::enqueue(handle, [=] { fn(ctx); });
}
