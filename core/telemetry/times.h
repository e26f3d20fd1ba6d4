// times.h - how a run spent its time: breakdown.csv.
//
//     rank,kind,seconds,share,steps
//
// Kinds: data, forward, backward, update, exposed (bytes move and nothing is
// computed), wait (nothing is computed, since others are late; also for other
// stages and slices, though their messages may move meanwhile), checkpoint,
// evaluate, slowed, other. Their sum is the time since spans_set_zero(),
// without the setup. The times are those of `steps` steps together. If a run
// was resumed, the times of its parts are added up. Parts that were killed have
// left no times, so these are missing.
//
// With a GPU these rows are the times of the host, which starts work and waits.
// Four more rows have the times of the GPU in the same steps: gpu_compute,
// gpu_comm, gpu_down, gpu_up. They may overlap each other.

#pragma once

#include "telemetry/span.h"

struct times_gpu { // seconds; all 0: no GPU was measured
    double compute, comm, down, up;
};

struct times {
    double seconds[SPAN_KINDS]; // of the compute lane, by innermost span
    // From the records that are kept, which cover the last kept_s. comm_s: time
    // in which any lane moved bytes. exposed_s: the part of it in which nothing
    // was computed, |union(comm) minus union(compute)|.
    double comm_s, exposed_s, kept_s;
    struct times_gpu gpu; // set by the caller
    int steps;            // how many steps these are; set by the caller
};

// Computes the times of all lanes. 0, or -1 after fail() if memory is short.
int times_of(const struct spans *s, struct times *out);

// Writes them to OUT/breakdown.WHO.csv. If the run `goes_on`, adds the times
// that OUT/breakdown.csv has for WHO. 0, or -1 after fail().
int times_write(const struct times *t, const char *out, const char *who,
                bool goes_on);

// Calls fn() for each row of OUT/breakdown.csv; not at all if there is none.
typedef void times_visit(void *ctx, const char *who, const char *kind,
                         double seconds, int steps);
void times_each(const char *out, times_visit *fn, void *ctx);
