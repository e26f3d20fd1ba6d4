// span.h - records what each thread did and when, in memory that is allocated
// beforehand.
//
//     compute        |data|--forward--|-----backward-----|--wait--|update|
//     communication                      |send|receive|add|send|receive|add|
//
// One thread writes a lane, without locks. A lane keeps its newest records. The
// spans of a lane nest. A lane also keeps the total time spent in each kind so
// far, which a sampler may read at any moment; at each moment the innermost
// open span counts. If recording is off, the lane "compute" keeps totals only,
// and there are no others: the functions that record take NULL and do nothing.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum span_kind {
    SPAN_OTHER, // no span is open
    SPAN_STEP,
    SPAN_DATA,
    SPAN_FORWARD,
    SPAN_BACKWARD,
    SPAN_READY, // passing a bucket to the backend
    SPAN_WAIT,
    SPAN_SEND,
    SPAN_RECEIVE,
    SPAN_ADD,
    SPAN_UPDATE,
    SPAN_CHECKPOINT,
    SPAN_EVALUATE,
    SPAN_SLOWED,   // a sleep on purpose, in place of more computing
    SPAN_GATHER,   // waiting for a block of the model
    SPAN_BUBBLE,   // waiting for another stage of the pipeline
    SPAN_JOIN,     // waiting for sums over the slices of the model
    SPAN_COMPRESS, // encoding and decoding of gradients (squeeze=)
    SPAN_KINDS
};

enum span_counter {
    COUNTER_LOSS,
    COUNTER_LAG,
    COUNTER_BYTES,
    COUNTER_RESTARTS, // marks the time of a restart of the job
    SPAN_COUNTERS
};

struct span_record {
    uint64_t begin_ns, end_ns; // equal for a counter
    double value;              // counter: its value; span: bytes it moved
    int32_t index;             // layer, bucket, slice, step; -1: none
    uint16_t depth;
    bool is_counter;
    uint8_t kind; // enum span_kind, or enum span_counter
};

struct spans;
struct span_lane;

enum { SPAN_LANES = 64, SPAN_DEPTH = 8, SPAN_NAME = 32 };

// Makes lanes of `records` records each, rounded up to a power of two (0: off).
// The first, "compute", belongs to the calling thread. 0, or -1 after fail().
int spans_open(struct spans **s, size_t records);
void spans_close(struct spans **s);

// Makes a lane for one thread, before that thread starts. All lanes are made by
// one thread. NULL, which records nothing, if s is NULL or off, or no lane or
// memory is left.
struct span_lane *spans_lane(struct spans *s, const char *name);

// The lane "compute"; NULL if s is NULL.
struct span_lane *spans_compute(struct spans *s);

// Open and close a span now. `index`: see struct span_record. Spans deeper than
// SPAN_DEPTH are not recorded. span_end() returns the span's nanoseconds, or 0.
void span_begin(struct span_lane *l, enum span_kind kind, int index);
uint64_t span_end(struct span_lane *l);

// Records a span that is over. It must be inside the innermost open span, and
// later than the spans already recorded there. Its time counts for `kind`, and
// no longer for the open span.
void span_add(struct span_lane *l, enum span_kind kind, int index,
              uint64_t begin_ns, uint64_t end_ns);

// The next span to be recorded moved `bytes` bytes.
void span_carries(struct span_lane *l, uint64_t bytes);

// Records the value of a counter, now.
void span_count(struct span_lane *l, enum span_counter counter, double value);

// Training begins now (spans_began()), and times in traces of this process
// count from zero_ns of its clock, modulo 2^64 (spans_zero()). Both are the
// same moment, except in a run that is resumed: there zero_ns is earlier by the
// time of the run's earlier parts. Any thread may read them; they are 0 until
// they are set.
void spans_set_zero(struct spans *s, uint64_t zero_ns);
uint64_t spans_zero(const struct spans *s);
uint64_t spans_began(const struct spans *s);

// ---- reading

// "forward", "loss".
const char *span_kind_name(enum span_kind kind);
const char *span_counter_name(enum span_counter counter);

// The lanes, numbered from 0, and their names. There are none if s is NULL.
int spans_nlanes(const struct spans *s);
const struct span_lane *spans_at(const struct spans *s, int lane);
const char *span_lane_name(const struct span_lane *l);

// Writes the nanoseconds that the lane has spent in each kind until now. Any
// thread may call it. One kind's time may fall from one call to the next
// (shares.h), their sum does not.
void span_totals(const struct span_lane *l, uint64_t out[SPAN_KINDS]);

// The same for the lane "compute" since spans_set_zero(). Only the lane's own
// thread may call it.
void spans_since_began(const struct spans *s, uint64_t out[SPAN_KINDS]);

// Calls fn for the records that are kept, oldest first. Returns how many were
// overwritten. Any thread may call it; it may leave out a few of the oldest.
// At a time there are at most span_most().
size_t span_most(const struct span_lane *l);
typedef void span_visit(void *ctx, const struct span_record *r);
uint64_t span_each(const struct span_lane *l, span_visit *fn, void *ctx);
