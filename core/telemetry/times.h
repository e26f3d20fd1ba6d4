// times.h - what a run spent its time on: breakdown.csv.
//
//     rank,kind,seconds,share,steps
//
// Kinds: data, forward, backward, update, exposed (bytes move and nothing is
// computed), wait (held up and no bytes move), checkpoint, evaluate, other.
// They add up to the time since spans_set_zero(): setting up is not in it. The
// time is that of `steps` steps. Of a run that goes on, its parts are added up,
// but for parts that were killed: those left no times.
//
// On a GPU those are the host's, who asks and waits; below them stand, beside
// one another and of the same time, what the GPU was at work on in steps:
// gpu_compute, gpu_comm, gpu_down, gpu_up.

#ifndef TELEMETRY_TIMES_H
#define TELEMETRY_TIMES_H

#include "telemetry/span.h"

struct times_gpu { // seconds; all 0: no GPU was measured
    double compute, comm, down, up;
};

struct times {
    double seconds[SPAN_KINDS]; // of the compute lane, by innermost span
    // From the records kept, which span the last kept_s: time in which some
    // lane moved bytes, and in which it did while nothing was computed,
    // |union(comm) minus union(compute)|.
    double comm_s, exposed_s, kept_s;
    struct times_gpu gpu; // the caller's to fill in
    int steps;            // the caller's, too: whose time this is
};

// 0, or -1 after fail() when memory is short.
int times_of(const struct spans *s, struct times *out);

// Write them as OUT/breakdown.WHO.csv; where the run `goes_on`, with what
// OUT/breakdown.csv says of WHO added. 0, or -1 after fail().
int times_write(const struct times *t, const char *out, const char *who,
                bool goes_on);

#endif
