// observe.h - records what happens while a worker trains, in addition to its
// rows in steps.csv: spans, samples of utilisation and TensorBoard's events.
// All workers' records use the same zero of time.

#pragma once

#include "telemetry/times.h"

#include <stdint.h>

struct activity;
struct sampler;
struct span_lane;
struct spans;
struct step_row;
struct tfevents;
struct trainer;

struct observe {
    struct spans *spans;       // totals only: trace=off, or no out=
    struct span_lane *lane;    // of the loop's thread
    struct activity *activity; // kernels=1
    struct sampler *sampler;
    struct tfevents *events;
    struct times_gpu gpu; // of the GPU, if there is one
    uint64_t zero_ns;     // zero of all times, by this clock; 0: not known yet
    int first_step;       // steps that earlier parts of the run have done
};

// Allocate the spans. Call it before the backend is opened, which records into
// the same spans. All functions here return 0, or -1 after fail().
int observe_open(struct trainer *t);

// Find the common zero of time and start sampling. In a resumed run, times
// continue from worker 0's t->time_before on all workers. All workers call it;
// the folder of out= must exist.
int observe_begin(struct trainer *t);

// Record one step's row, and what the GPU has done meanwhile.
int observe_step(struct trainer *t, const struct step_row *row);

// Write this rank's trace, samples and times into the folder of out=.
int observe_end(struct trainer *t);

// Join the files of all ranks in folder `out`. It may be called again.
int observe_merge(const char *out);

// Frees everything. After a failed run it writes the trace first.
void observe_close(struct trainer *t);
