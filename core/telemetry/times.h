// times.h - how a run spent its time: breakdown.csv.
//
//     rank,kind,seconds,share,steps
//
// Kinds: data, forward, backward, update, exposed (bytes move and nothing is
// computed), wait (held up and no bytes move), checkpoint, evaluate, other.
// They add up to the time since spans_set_zero(), without the setup. The time
// is that of `steps` steps. If a run was resumed, the times of its parts are
// added up. Parts that were killed left no times, so they are missing.
//
// With a GPU these rows are the times of the host: it starts work and waits.
// Four more rows say what the GPU did in the same time, in steps: gpu_compute,
// gpu_comm, gpu_down, gpu_up. These may overlap each other.

#ifndef TELEMETRY_TIMES_H
#define TELEMETRY_TIMES_H

#include "telemetry/span.h"

struct times_gpu { // seconds; all 0: no GPU was measured
    double compute, comm, down, up;
};

struct times {
    double seconds[SPAN_KINDS]; // of the compute lane, by innermost span
    // From the records that were kept; they cover the last kept_s. comm_s: time
    // in which some lane moved bytes. exposed_s: the part of it in which
    // nothing was computed, |union(comm) minus union(compute)|.
    double comm_s, exposed_s, kept_s;
    struct times_gpu gpu; // the caller fills it in
    int steps;            // so does it here: how many these are
};

// 0, or -1 after fail() when memory is short.
int times_of(const struct spans *s, struct times *out);

// Writes them as OUT/breakdown.WHO.csv. If the run `goes_on`, adds the times
// that OUT/breakdown.csv has for WHO. 0, or -1 after fail().
int times_write(const struct times *t, const char *out, const char *who,
                bool goes_on);

#endif
