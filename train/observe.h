// observe.h - what is recorded while a worker trains, beside its rows: spans,
// samples of utilisation, TensorBoard's events, on a clock that all share.

#ifndef TRAIN_OBSERVE_H
#define TRAIN_OBSERVE_H

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
    struct spans *spans;    // NULL: trace=off, or no out=
    struct span_lane *lane; // of the loop's thread; NULL likewise
    struct activity *activity; // kernels=1
    struct sampler *sampler;
    struct tfevents *events;
    struct times_gpu gpu; // where there is one
    uint64_t zero_ns;     // of this clock: where times count from; 0: before
    int first_step;       // steps that earlier parts of the run have done
};

// Allocate; before the backend is opened, which records into the same spans.
int observe_open(struct trainer *t);

// Find the common zero, start sampling. Of a run that goes on, times go on from
// worker 0's t->time_before, everywhere. Every worker calls it, OUT exists.
int observe_begin(struct trainer *t);

int observe_step(struct trainer *t, const struct step_row *row);

// Write this rank's trace, samples and times.
int observe_end(struct trainer *t);

// Join what the ranks have written in OUT. Again is harmless.
int observe_merge(const char *out);

// Frees everything; a run that failed leaves its trace.
void observe_close(struct trainer *t);

#endif
