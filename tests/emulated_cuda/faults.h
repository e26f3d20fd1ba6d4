// faults.h - kernels for the emulation's own test, most of them wrong.

#ifndef EMULATED_CUDA_FAULTS_H
#define EMULATED_CUDA_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAULT_THREADS = 96 };

// out[t] = t's neighbour, passed through shared memory; `up`: the next one's,
// else the one's before. Right only with `barrier`.
void fault_neighbours(void *stream, int *out, bool up, bool barrier);

// out[t] = in[4 (t + 1)], or 0 for the last, passed through shared memory by
// copies that take their time. Right only with `wait` and `barrier`.
void fault_copies(void *stream, float *out, const float *in, bool wait,
                  bool barrier);

// A thread ends before its copy.
void fault_left_copies(void *stream, const float *in);

// Half of each warp is not there at a shuffle; or half of a warp at a barrier,
// half at a shuffle.
void fault_half_warp(void *stream, int *out);
void fault_two_places(void *stream, int *out);

// A thread writes out[n].
void fault_outside(void *stream, int *out, size_t n);

// A block with so many bytes of dynamic shared memory beside a little of its
// own.
void fault_shared(void *stream, int *out, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
