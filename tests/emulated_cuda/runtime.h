// runtime.h - what libraries beside the runtime ask of its streams.

#ifndef EMULATED_CUDA_RUNTIME_QUEUE_H
#define EMULATED_CUDA_RUNTIME_QUEUE_H

#include <functional>

namespace emulated
{

// Do `what` when all that was asked of this cudaStream_t before is done.
void enqueue(void *stream, std::function<void()> what);

} // namespace emulated

#endif
