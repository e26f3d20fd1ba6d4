// faults.h - kernels for the emulation's own test, most of them wrong.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAULT_THREADS = 96 };

// out[t] = the number of t's neighbour, passed through shared memory. The
// neighbour is the next thread with `up`, else the previous one. The result is
// right only with `barrier`.
void fault_neighbours(void *stream, int *out, bool up, bool barrier);

// out[t] = in[4 (t + 1)], or 0 for the last thread, passed through shared
// memory by asynchronous copies. It is right only with `wait` and `barrier`.
void fault_copies(void *stream, float *out, const float *in, bool wait,
                  bool barrier);

// A thread ends without waiting for its asynchronous copy.
void fault_left_copies(void *stream, const float *in);

// fault_half_warp(): at a shuffle, half of the warp's threads have ended.
// fault_two_places(): half of a warp is at a barrier, the other half at a
// shuffle.
void fault_half_warp(void *stream, int *out);
void fault_two_places(void *stream, int *out);

// A thread writes out[n].
void fault_outside(void *stream, int *out, size_t n);

// A block with `bytes` bytes of dynamic shared memory and 128 bytes of static.
void fault_shared(void *stream, int *out, size_t bytes);

#ifdef __cplusplus
}
#endif
