// fiber.h - fibers. A fiber is a function with a stack of its own. It runs
// until it changes to another fiber.

#ifndef EMULATED_CUDA_FIBER_H
#define EMULATED_CUDA_FIBER_H

namespace emulated
{

struct fiber;

// A fiber that will run entry(), which must not return.
struct fiber *fiber_open(void (*entry)());

// Continues fiber `to` where it stopped (NULL: the thread itself, outside of
// all fibers). The caller is `from`. It continues when another fiber changes to
// it.
void fiber_change(struct fiber *from, struct fiber *to);

} // namespace emulated

#endif
