// runtime.h - functions of the emulated runtime for other emulated libraries,
// and for tests that check the host's waits.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus

#include <functional>

namespace emulated
{

// Puts `what` into this cudaStream_t, behind all earlier work.
void enqueue(void *stream, std::function<void()> what);

// The bytes from p to the end of its allocation on the device; 0 if p is in
// none.
size_t allocated(const void *p);

// Advances the GPU's clock, which events read, by ns: the work that runs now
// seems to take that much longer.
void pass(uint64_t ns);

// Tells the runtime that a product now runs with the nth algorithm that
// cublasLtMatmulAlgoGetHeuristic() offered, for `target` multiprocessors.
void product(int nth, bool fused, int target);

} // namespace emulated

extern "C" {
#endif

// The number of times that the host has waited for an event or a stream by
// polling, as a driver does unless it is told to block.
int emulated_cuda_spins(void);

// The algorithm of the last product: its index, from 0, among those that were
// offered. *fused says whether the product computed an epilogue.
int emulated_cuda_algorithm(bool *fused);

// The number of multiprocessors that the last product might use; 0: all.
int emulated_cuda_target(void);

// The number of kernels that ran between cudaProfilerStart() and
// cudaProfilerStop().
long emulated_cuda_profiled(void);

#ifdef __cplusplus
}
#endif
