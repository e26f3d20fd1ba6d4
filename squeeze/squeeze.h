// squeeze.h - the contract of compressors of gradients (squeeze=).
//
// A worker adds what it did not send before (its residual) to its gradients,
// encodes the sum x as a message, and keeps what the message lacks:
//
//     x = gradients + residual;  message = encode(x);  residual = x - message
//
// This is error feedback (Seide et al., Interspeech 2014; Karimireddy et al.,
// ICML 2019): all that a worker leaves out is sent later. Every worker adds
// the messages of all workers, in the order of ranks, so all have the same
// bits. There are two ways for a message to travel:
//
//     gathered   every worker gets every message, and adds them up. Bytes of
//                a worker: (w-1) m, so they grow with the number of workers
//     twice      worker j gets part j of every vector, adds the parts up,
//                encodes the sum again, with a residual of its own, and sends
//                it to all: 2(w-1) m, where m is the message of one part
//
// A compressor is one constant of this type in a file of its own, and a row
// in squeeze.c. Its functions only compute: they send nothing, keep nothing
// and allocate nothing. docs/squeeze.md compares them.

#ifndef SQUEEZE_SQUEEZE_H
#define SQUEEZE_SQUEEZE_H

#include "config/settings.h"
#include "sync/law.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct squeeze_ops {
    const char *name;
    bool twice; // else gathered
    // The bytes of a message of n elements: a multiple of 4, 0 for n = 0.
    size_t (*bytes)(const struct sync_settings *s, size_t n);
    // The bytes of scratch that encode() needs for n elements. NULL: none.
    size_t (*scratch)(size_t n);
    // Writes the message of x (n elements), and leaves in x what the message
    // lacks. `key` is the stream of random choices (base/rng.h). An element
    // that is not finite makes some element of the decoded message so.
    void (*encode)(const struct sync_settings *s, uint64_t key, float *x,
                   size_t n, void *message, void *scratch);
    // sum += the n elements that a message holds. Returns 0, or -1 after
    // fail() if no encode() writes such a message. Then sum is not complete.
    int (*add)(const struct sync_settings *s, const void *message, size_t n,
               float *sum);
};

extern const struct squeeze_ops squeeze_topk, squeeze_int8, squeeze_sign;

// The compressor of squeeze=; NULL for none.
const struct squeeze_ops *squeeze_find(enum squeeze_kind kind);

// The elements that topk sends of n: density= of them, rounded up.
size_t squeeze_entries(const struct sync_settings *s, size_t n);

// The bytes of the message that a worker sends to each other worker, for a
// vector of n elements: of the whole vector, or of its largest part.
size_t squeeze_message(const struct sync_settings *s, int world, size_t n);

// The law: bytes that every worker sends, and receives, for a vector of n
// elements. Nothing is sent if world is 1.
uint64_t squeeze_bytes(const struct sync_settings *s, int world, size_t n);

// The same as a law of times, for `params` gradients that are compressed as one
// vector. Their messages are gathered around a ring. A compressor that sends
// twice first exchanges parts between all pairs of workers at once.
struct law squeeze_law(const struct sync_settings *s, int world, double params);

#endif
