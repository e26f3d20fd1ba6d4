// fault.c - faults on purpose, at the step that inject= names.

#include "sync/fault.h"

#include "base/base.h"
#include "device/device.h"
#include "sync/copies.h"

#include <math.h>
#include <signal.h>

int fault_step(const struct sync *s)
{
    if (s->fault.kind == FAULT_NONE || s->calls != s->fault.at)
        return 0;
    if (s->fault.kind == FAULT_KILL)
        raise(SIGKILL);
    if (s->fault.kind == FAULT_FAIL)
        return fail("inject: step %llu fails on purpose",
                    (unsigned long long)s->calls);
    if (s->fault.kind == FAULT_DELAY)
        sleep_ns((uint64_t)s->fault.ms * 1000000u);
    return 0;
}

int fault_gradient(struct sync *s)
{
    bool nan = s->fault.kind == FAULT_NAN;
    if ((!nan && s->fault.kind != FAULT_INF) || s->calls + 1 != s->fault.at)
        return 0;
    float bad = nan ? NAN : INFINITY;
    size_t off = s->job.buckets[0].off;
    float *grads = s->lends_grads ? s->place.grads
                   : s->copies    ? copies_grads(s->copies) + off
                                  : s->job.grads + off;
    return device_copy(s->job.dev, grads, &bad, sizeof bad);
}
