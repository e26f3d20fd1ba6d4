// runtime.h - what libraries beside the runtime ask of its streams, and what
// tests ask about the host's waits.

#ifndef EMULATED_CUDA_RUNTIME_QUEUE_H
#define EMULATED_CUDA_RUNTIME_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus

#include <functional>

namespace emulated
{

// Do `what` when all that was asked of this cudaStream_t before is done.
void enqueue(void *stream, std::function<void()> what);

// Work that is being done takes so long more by the GPU's clock, which events
// tell.
void pass(uint64_t ns);

// A product is being done by the nth algorithm that was offered, for so many
// multiprocessors.
void product(int nth, bool fused, int target);

} // namespace emulated

extern "C" {
#endif

// How often the host waited for an event or a stream by looking at it again and
// again, as a driver does unless it is told to sleep.
int emulated_cuda_spins(void);

// Which algorithm did the last product, counted from 0 in the order of the
// offer, and whether with an epilogue of its own.
int emulated_cuda_algorithm(bool *fused);

// For how many multiprocessors the last product was made; 0: for all.
int emulated_cuda_target(void);

// How many kernels ran between cudaProfilerStart() and ..Stop().
long emulated_cuda_profiled(void);

#ifdef __cplusplus
}
#endif

#endif
