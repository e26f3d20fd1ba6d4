// wire.h - the messages between workers and parameter servers.
//
// A message is a head of PS_HEAD bytes, little-endian, and a frame of data,
// which may be empty. A step with consistency=bsp and update=server:
//
//     worker                         server
//     PUSH row 0, row 1 ..   ->      adds each, in rank order
//                            <-      CREDIT row 0 ..     may send another row
//     STEP lr, clip, ..      ->
//                            <-      NORM sum of squares  (only with several
//     COMMIT total           ->                            servers)
//                            <-      RESULT norm, skipped
//                            <-      SLICE row ..         new parameters
//
// With update=worker there are only PUSH -> SLICE (the sum), which the server
// sends as soon as the last worker's slice has come, and RESULT at the end.
//
// With squeeze= both are messages of compressed gradients (PS_SQUEEZED). PUSH
// then has the step of the run in `version`, and in `value` how many updates
// the worker has made. By it a server knows whether the step before was one, so
// that what its answers lacked is kept.

#pragma once

#include "base/half.h"

#include <stddef.h>
#include <stdint.h>

enum { PS_VERSION = 5, PS_HEAD = 64, PS_MAX_WORLD = 4096 };

// The largest slice, and the largest frame of anything else.
enum { PS_MAX_SLICE = 64 << 20, PS_MAX_DATA = 1 << 16 };

enum ps_kind {
    // from a worker
    PS_HELLO = 1, // data: the job (job.h)
    PS_JOIN,      // elastic: asks to take part from `round` on
    PS_SET,       // a row of vector `what`, to be stored
    PS_PULL,      // asks for all rows of `what`, at `version` or later
    PS_CLAIM,     // backup: the gradient of `round` is complete; asks to push
    PS_STEP,      // data: struct ps_step; the gradient is complete
    PS_PUSH,      // a row of the gradient
    PS_COMMIT,    // value: squares summed over all servers
    PS_DROP,      // elastic: another server has lost worker `order`
    PS_BYE,       // the worker leaves on purpose
    // from a server
    PS_WELCOME, // `version` 0: all have come, and no gradient yet. 1: the job
                // already runs; `round` is the first in which the worker may
                // take part or, as the answer to JOIN, the one asked for;
                // value, asp, ssp: how many of its steps before `round`,
                // or of those that it missed, were updates
    PS_LATER,   // to JOIN: too late for that round; `round`: as in WELCOME
    PS_CREDIT,  // a row of PUSH or SET has been taken in
    PS_ADMIT,   // to CLAIM: push as number `order`
    PS_LATE,    // to CLAIM: not needed; PULL `version`
    PS_AGAIN,   // elastic: `round` restarts, with `epoch`; send it again
    PS_NORM,    // value: squares summed over this shard; data: ranks in it
    PS_RESULT,  // data: struct ps_result; order, elastic: the lowest rank alive
    PS_SLICE,   // a row of `what`, the answer to PULL or PUSH; value, to PULL:
                // gradients in all updates so far
    PS_ERROR,   // data: text; the job is over for the receiver
    PS_PING,    // no data: tests whether the receiver is still connected
    // from both: finds how far the clocks are apart
    PS_CLOCK, // worker: version 0 asks for the server's time, else version is
              // the zero of traces. Server: version is its time, round its host
    PS_BUSY,  // worker: it works for longer than the deadline, but lives.
              // Server: tells the other workers, who may wait for that one;
              // and all, while rows of some still come
    PS_KINDS
};

// Vectors that have rows on a server.
enum ps_what {
    PS_PARAMS,
    PS_SLOT0,
    PS_SLOT1,
    PS_RESIDUAL, // what the servers' compressed answers lack
    PS_GRADS,
    PS_SQUEEZED, // gradients as a message of squeeze/; the answer to it, too
    PS_WHATS
};

struct ps_head {
    enum ps_kind kind;
    enum dtype dtype;  // of the data, if these are numbers
    enum ps_what what; // which vector
    uint32_t rank;     // of the worker; from a server: its index
    uint32_t row;      // which row of the shard
    uint32_t epoch;    // restarts of rounds so far (elastic)
    uint32_t order;    // the worker's place in the sum (backup); a rank (DROP,
                       // RESULT)
    uint64_t round;    // updates counted from 1; the clock under ssp and asp
    uint64_t version;  // number of updates of a row
    uint64_t bytes;    // of the data
    double value;
};

// The numbers of one step, equal on all workers under bsp.
struct ps_step {
    uint32_t step;
    uint32_t skip; // asp, ssp: 1 if this worker's gradient overflowed: no PUSH
    float lr, grad_scale, clip;
};

struct ps_result {
    double norm;
    uint32_t skipped;
    uint32_t lag;                   // ssp, asp
    uint64_t served_out, served_in; // payload to and from workers that are not
                                    // beside this server, since open
    uint64_t used; // gradients of workers in all updates so far, since open
};

enum { PS_STEP_BYTES = 20, PS_RESULT_BYTES = 40 };

const char *ps_kind_name(enum ps_kind kind); // "HELLO", ..; "?" if unknown

// Write *h to `out`, little-endian.
void ps_head_put(uint8_t out[PS_HEAD], const struct ps_head *h);

// Read a head of n bytes. Returns 0, or -1 after fail() if it has another magic
// or version, or numbers outside their ranges. The caller still has to check
// whether the message is allowed now.
int ps_head_get(struct ps_head *h, const void *frame, size_t n);

// The data of STEP and RESULT. Readers return 0, or -1 after fail().
void ps_step_put(uint8_t out[PS_STEP_BYTES], const struct ps_step *s);
int ps_step_get(struct ps_step *s, const void *data, size_t n);
void ps_result_put(uint8_t out[PS_RESULT_BYTES], const struct ps_result *r);
int ps_result_get(struct ps_result *r, const void *data, size_t n);

// How many slices a worker may have on their way to a server before one of them
// is acknowledged by a credit. This bounds the memory in which a server keeps
// slices of workers that are ahead of the slowest, whatever the size of the
// gradient. It is 8 slices for each worker; with more than 8 workers, which
// share the server's link, it is 64 / world, and at least 2.
int ps_window(int world);

// The number by which a worker divides its gradient before casting it down, so
// that a sum over `world` workers stays in range: the least power of two that
// is at least world, so that the division is exact; 1 for an fp32 wire.
float ps_divisor(int world, enum dtype wire);
