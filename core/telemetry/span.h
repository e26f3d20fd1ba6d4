// span.h - who did what from when to when, in memory allocated beforehand.
//
//     compute        |data|--forward--|-----backward-----|--wait--|update|
//     communication                      |send|receive|add|send|receive|add|
//
// A lane is written by one thread, without locks; its newest records are kept.
// Spans of a lane nest. Besides the records a lane keeps the time spent in each
// kind so far (the innermost open span counts), so that a sampler may ask at
// any moment. Everything accepts NULL and does nothing: recording is off.

#ifndef TELEMETRY_SPAN_H
#define TELEMETRY_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum span_kind {
    SPAN_OTHER, // of a lane that has no span open
    SPAN_STEP,
    SPAN_DATA,
    SPAN_FORWARD,
    SPAN_BACKWARD,
    SPAN_READY, // a bucket is handed over
    SPAN_WAIT,
    SPAN_SEND,
    SPAN_RECEIVE,
    SPAN_ADD,
    SPAN_UPDATE,
    SPAN_CHECKPOINT,
    SPAN_EVALUATE,
    SPAN_SLOWED, // on purpose, for as long as more computing would take
    SPAN_GATHER, // a block of the model is waited for
    SPAN_BUBBLE, // another stage of the pipeline is
    SPAN_JOIN,   // sums over the slices of the model are
    SPAN_KINDS
};

enum span_counter {
    COUNTER_LOSS,
    COUNTER_LAG,
    COUNTER_BYTES,
    COUNTER_RESTARTS, // a mark where a job begins again
    SPAN_COUNTERS
};

struct span_record {
    uint64_t begin_ns, end_ns; // equal for a counter
    double value;              // of a counter; of a span: bytes it moved
    int32_t index;             // layer, bucket, slice, step; -1: none
    uint16_t depth;
    bool is_counter;
    uint8_t kind; // enum span_kind, or enum span_counter
};

struct spans;
struct span_lane;

enum { SPAN_LANES = 64, SPAN_DEPTH = 8, SPAN_NAME = 32 };

// Room for `records` a lane, rounded up to a power of two. The first lane,
// "compute", is the caller's thread's. 0, or -1 after fail().
int spans_open(struct spans **s, size_t records);
void spans_close(struct spans **s);

// A lane for one thread, made before that thread starts (and by one thread).
// NULL where s is, or where no lane or memory is left: not recorded.
struct span_lane *spans_lane(struct spans *s, const char *name);

// The lane "compute"; NULL where s is.
struct span_lane *spans_compute(struct spans *s);

// Open and close a span now. Deeper than SPAN_DEPTH is not recorded.
void span_begin(struct span_lane *l, enum span_kind kind, int index);
void span_end(struct span_lane *l);

// A span that is over, inside the innermost open one and after those recorded
// in it: its time is counted to `kind` instead.
void span_add(struct span_lane *l, enum span_kind kind, int index,
              uint64_t begin_ns, uint64_t end_ns);

// The next span that is recorded moved so many bytes.
void span_carries(struct span_lane *l, uint64_t bytes);

void span_count(struct span_lane *l, enum span_counter counter, double value);

// Training begins now, and traces of this process count from zero_ns of its
// clock, modulo 2^64. The two are one moment, but for a run that goes on: its
// zero lies as far back as its earlier parts took. Reading: from any thread, 0
// until it is set. All accept NULL.
void spans_set_zero(struct spans *s, uint64_t zero_ns);
uint64_t spans_zero(const struct spans *s);
uint64_t spans_began(const struct spans *s);

// ---- reading

const char *span_kind_name(enum span_kind kind);
const char *span_counter_name(enum span_counter counter);

int spans_nlanes(const struct spans *s);
const struct span_lane *spans_at(const struct spans *s, int lane);
const char *span_lane_name(const struct span_lane *l);

// Nanoseconds that the lane has spent in each kind until now; from any thread.
// A kind's may fall from one call to the next (shares.h), their sum does not.
void span_totals(const struct span_lane *l, uint64_t out[SPAN_KINDS]);

// The same of the lane "compute" since spans_set_zero(); for its caller's
// thread.
void spans_since_began(const struct spans *s, uint64_t out[SPAN_KINDS]);

// Visit the records that are kept, oldest first; returns how many were
// overwritten. From any thread: the oldest few may be left out.
typedef void span_visit(void *ctx, const struct span_record *r);
uint64_t span_each(const struct span_lane *l, span_visit *fn, void *ctx);

#endif
