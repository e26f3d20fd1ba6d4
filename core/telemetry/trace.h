// trace.h - spans as a Chrome trace, for ui.perfetto.dev and chrome://tracing.
//
//     trace.R.json      one process a rank (trace.s0.json: of server 0) ...
//     trace.json        ... merged when the job is over
//     hta/rank-R.json   the same for Meta's HTA, on demand
//
// One process a rank, one thread a lane; times in microseconds on rank 0's
// clock since training began; of a run that went on, in all of its parts.

#ifndef TELEMETRY_TRACE_H
#define TELEMETRY_TRACE_H

#include "telemetry/activity.h"

#include <stdbool.h>

struct spans;

enum { TRACE_SERVER = 10000 }; // pid of server 0; of rank 0 it is 0

struct trace_head {
    int pid;          // unique in the job
    const char *name; // of the process: "rank 0 (ring)"
    // Kernels and copies of its GPU, if they were recorded: a thread a stream.
    const struct activity_record *activity;
    size_t nactivity;
};

// Write all lanes to `path` by temporary file and rename; times count from
// spans_zero(). 0, or -1 after fail().
int trace_write(const struct spans *s, const char *path,
                const struct trace_head *head);

// The same as HTA reads it: kernels of the GPU, if they were recorded. Else a
// lane is a stream of a device, each innermost span a kernel behind its launch,
// and communication is called nccl_compat_Kernel:NAME, since HTA takes for it
// what matches ^nccl.*Kernel, and nothing else.
int trace_write_hta(const struct spans *s, const char *path,
                    const struct trace_head *head);

// Join OUT/trace.*.json, and what OUT/trace.json holds already, into
// OUT/trace.json, and remove the parts; those of servers, if they have ended.
// 0, or -1 after fail().
int trace_merge(const char *out, bool servers);

// For a run that goes on from its second until_s: the same for what workers
// left behind, without the events after it.
int trace_cut(const char *out, double until_s);

#endif
