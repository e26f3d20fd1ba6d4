// fiber.h - a stack to run on, and the change from one to another.

#ifndef EMULATED_CUDA_FIBER_H
#define EMULATED_CUDA_FIBER_H

namespace emulated
{

struct fiber;

// A fiber that will run entry(), which must not return.
struct fiber *fiber_open(void (*entry)());

// Go on where `to` stopped (NULL: the thread itself, outside of all fibers);
// `from`, which calls this, goes on when somebody changes to it.
void fiber_change(struct fiber *from, struct fiber *to);

} // namespace emulated

#endif
