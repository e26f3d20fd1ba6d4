// fiber.h - fibers. A fiber is a function with a stack of its own. It runs
// until it changes to another fiber.

#pragma once

namespace emulated
{

struct fiber;

// A fiber that will run entry(), which must not return.
struct fiber *fiber_open(void (*entry)());

// Stops the caller, which is fiber `from`, and continues fiber `to` at the
// place where `to` stopped. The call returns when another fiber changes to
// `from`. NULL stands for the thread outside of all fibers.
void fiber_change(struct fiber *from, struct fiber *to);

} // namespace emulated
