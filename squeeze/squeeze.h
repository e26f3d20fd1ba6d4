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
// Where worker j updates part j only (sync=zero), the sum stays there, whether
// messages are gathered or sent twice elsewhere: (w-1) m (scatter.h).
//
// A compressor is one constant of this type in a file of its own, and a row of
// config/compressors.def. Its functions only compute: they send nothing, keep
// nothing and allocate nothing. docs/squeeze.md compares them.

#pragma once

#include "config/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct squeeze_ops {
    const char *name;
    bool twice;  // else gathered
    bool summed; // with twice: by two all-reduces (sums.c); it has no functions
    // The strategy leaves the update itself, and no sum of gradients
    // (cosines.h). Of the functions it has scratch() only.
    bool gives_update;
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

#define COMPRESSOR(kind, word, ops) extern const struct squeeze_ops ops;
#include "config/compressors.def"
#undef COMPRESSOR

// The compressor of squeeze=; NULL for none.
const struct squeeze_ops *squeeze_find(enum squeeze_kind kind);

// The first steps, which send gradients whole: squeeze_after=, or freeze=.
uint64_t squeeze_whole_steps(const struct sync_settings *s);

// The elements that topk sends of n: density= of them, rounded up.
size_t squeeze_entries(const struct sync_settings *s, size_t n);

// Clears the elements of v (n elements) that a message of topk, which encode()
// has just written, sends.
void squeeze_clear_sent(const struct sync_settings *s, const void *message,
                        size_t n, float *v);

// A server's answer to messages of topk: the elements of their sum that are not
// 0, at most as many as all messages have entries. squeeze_put_union() writes
// them to `message` and returns the bytes, fewer than 4 n. It returns 0 if the
// sum itself is not longer, or has no such element. squeeze_add_union(): sum +=
// the n elements of an answer; 0, or -1 after fail() if it is malformed.
size_t squeeze_put_union(const float *x, size_t n, void *message);
int squeeze_add_union(const void *message, size_t bytes, size_t n, float *sum);

// The bytes of the message that a worker sends to each other worker, for a
// vector of n elements: of the whole vector, or of its largest part.
size_t squeeze_message(const struct sync_settings *s, int world, size_t n);

// The stream of random choices for a part of the vector that begins at `off`.
// No other step, rank or part draws the same numbers; nor does the sum, which
// `rank` compresses.
uint64_t squeeze_stream(uint64_t seed, uint64_t step, int rank, bool sum,
                        size_t off);
