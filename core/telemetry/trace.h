// trace.h - spans as a Chrome trace, for ui.perfetto.dev and chrome://tracing.
//
//     trace.R.json      of rank R (trace.s0.json: of server 0)
//     trace.json        all of them, merged when the job is over
//     hta/rank-R.json   the same for Meta's HTA, with trace=hta
//
// A rank is a process of the trace, and a lane is a thread. Times are in
// microseconds on rank 0's clock, since training began; in a run that was
// resumed, since its first part began.

#pragma once

#include "telemetry/activity.h"

#include <stdbool.h>

struct spans;

enum { TRACE_SERVER = 10000 }; // pid of server 0; the pid of rank 0 is 0

struct trace_head {
    int pid;          // unique in the job
    const char *name; // of the process: "rank 0 (ring)"
    // Kernels and copies of its GPU, if they were recorded. Each stream is a
    // thread.
    const struct activity_record *activity;
    size_t nactivity;
    // The form that HTA reads: the kernels of the GPU, if they were recorded.
    // Else each lane becomes a stream of a device, and each innermost span a
    // kernel with its launch. Communication is then called
    // nccl_compat_Kernel:NAME, since HTA takes only names that match
    // ^nccl.*Kernel for communication.
    bool hta;
};

// Writes all lanes to a temporary file, then renames it to `path`. Times count
// from spans_zero(). 0, or -1 after fail().
int trace_write(const struct spans *s, const char *path,
                const struct trace_head *head);

// Adds OUT/trace.*.json to the events of OUT/trace.json, and removes the parts.
// With `servers`, also the parts of servers, which must have ended. 0, or -1
// after fail().
int trace_merge(const char *out, bool servers);

// For a run that goes on from its time until_s: the same for the files that
// workers left, without events that began after until_s.
int trace_cut(const char *out, double until_s);
