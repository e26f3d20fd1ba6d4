// wire.h - what workers and parameter servers say to each other.
//
// A message is a head of PS_HEAD bytes, little-endian, and a frame of data,
// which may be empty. A step under bsp, with the server updating:
//
//     worker                         server
//     PUSH row 0, row 1 ..   ->      adds each, in rank order
//                            <-      CREDIT row 0 ..     room for another
//     STEP lr, clip, ..      ->
//                            <-      NORM                 (several servers:
//     COMMIT sum of norms    ->                            worker 0 adds them)
//                            <-      RESULT norm, skipped
//                            <-      SLICE row ..         new parameters
//
// With the worker updating there is only PUSH -> SLICE (the sum), answered as
// soon as the last worker's slice is in, and RESULT at the end.

#ifndef PS_WIRE_WIRE_H
#define PS_WIRE_WIRE_H

#include "base/half.h"

#include <stddef.h>
#include <stdint.h>

enum { PS_VERSION = 1, PS_HEAD = 64, PS_MAX_WORLD = 4096 };

// The largest slice, and the largest frame of anything else.
enum { PS_MAX_SLICE = 64 << 20, PS_MAX_DATA = 1 << 16 };

enum ps_kind {
    // from a worker
    PS_HELLO = 1, // data: the job as this worker was told it (job.h)
    PS_JOIN,      // elastic: count me in from `round` on
    PS_SET,       // a row of vector `what`, to be kept
    PS_PULL,      // send all rows of `what`, at `version` or later
    PS_CLAIM,     // backup: my gradient of `round` is complete; may I push?
    PS_STEP,      // data: struct ps_step; the whole gradient is on its way
    PS_PUSH,      // a row of the gradient
    PS_COMMIT,    // value: squares summed over all servers
    PS_DROP,      // elastic: another server has lost worker `order`
    PS_BYE,       // leaving, on purpose
    // from a server
    PS_WELCOME, // all are here; `round` is the next (0: before the first)
    PS_LATER,   // to JOIN: too late for that round, `round` is present
    PS_CREDIT,  // a pushed or set row has been taken in
    PS_ADMIT,   // to CLAIM: push as number `order`
    PS_LATE,    // to CLAIM: not needed; pull `version`
    PS_AGAIN,   // elastic: send `round` once more, under `epoch`
    PS_NORM,    // value: squares summed over this shard; data: who is in it
    PS_RESULT,  // data: struct ps_result
    PS_SLICE,   // a row of `what`, as asked for or as the answer to PUSH
    PS_ERROR,   // data: text; the job is over for the receiver
    PS_PING,    // nothing: sees whether the receiver is still connected
    // both: how far the clocks are apart
    PS_CLOCK, // worker: version 0 asks; else it is the run's time zero. Server:
              // version is its time, round says which host it is on
    PS_KINDS
};

// Vectors that have rows on a server.
enum ps_what { PS_PARAMS, PS_SLOT0, PS_SLOT1, PS_GRADS, PS_WHATS };

struct ps_head {
    enum ps_kind kind;
    enum dtype dtype;  // of the data, where it is numbers
    enum ps_what what; // which vector
    uint32_t rank;     // of the worker; from a server: its index
    uint32_t row;      // which of the shard's slices
    uint32_t epoch;    // restarts of rounds so far (elastic)
    uint32_t order;    // the turn in which to add (backup); a rank (DROP)
    uint64_t round;    // updates counted from 1; the clock under ssp and asp
    uint64_t version;  // updates that a row has seen
    uint64_t bytes;    // of the data
    double value;
};

// The numbers of one step, equal on all workers under bsp.
struct ps_step {
    uint32_t step;
    uint32_t skip; // asp, ssp: this worker's gradient overflowed; none follows
    float lr, grad_scale, clip;
};

struct ps_result {
    double norm;
    uint32_t skipped;
    uint32_t lag;                   // ssp, asp
    uint64_t served_out, served_in; // payload between this server and workers
                                    // that do not sit beside it, since open
};

enum { PS_STEP_BYTES = 20, PS_RESULT_BYTES = 32 };

const char *ps_kind_name(enum ps_kind kind);

void ps_head_put(uint8_t out[PS_HEAD], const struct ps_head *h);

// 0, or -1 after fail(): another magic or version, or numbers outside their
// ranges. What is left to check is whether the message fits the moment.
int ps_head_get(struct ps_head *h, const void *frame, size_t n);

void ps_step_put(uint8_t out[PS_STEP_BYTES], const struct ps_step *s);
int ps_step_get(struct ps_step *s, const void *data, size_t n);
void ps_result_put(uint8_t out[PS_RESULT_BYTES], const struct ps_result *r);
int ps_result_get(struct ps_result *r, const void *data, size_t n);

// Slices that a worker may have on their way to a server before one of them has
// been taken in. That bounds what the server holds of those who are ahead of
// the slowest, whatever the size of the gradient: 8 slices a worker, and where
// workers are many, who share the server's link, fewer: from 32 on 2.
int ps_window(int world);

// What a worker divides its gradient by before it is cast down, so that a sum
// over `world` stays in range: the least power of two that is not below world,
// which is exact; 1 for an fp32 wire.
float ps_divisor(int world, enum dtype wire);

#endif
