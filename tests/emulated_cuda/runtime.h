// runtime.h - what libraries beside the runtime ask of its streams, and what
// tests ask about the host's waits.

#ifndef EMULATED_CUDA_RUNTIME_QUEUE_H
#define EMULATED_CUDA_RUNTIME_QUEUE_H

#ifdef __cplusplus

#include <functional>

namespace emulated
{

// Do `what` when all that was asked of this cudaStream_t before is done.
void enqueue(void *stream, std::function<void()> what);

} // namespace emulated

extern "C" {
#endif

// How often the host waited for an event or a stream by looking at it again and
// again, as a driver does unless it is told to sleep.
int emulated_cuda_spins(void);

// How many kernels ran between cudaProfilerStart() and ..Stop().
long emulated_cuda_profiled(void);

#ifdef __cplusplus
}
#endif

#endif
