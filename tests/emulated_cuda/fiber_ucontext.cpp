// fiber_ucontext.cpp - fibers by the C library, for processors other than
// x86-64. They are slower, since the library sets the signal mask at every
// change.

#include "tests/emulated_cuda/fiber.h"
#include "tests/emulated_cuda/stack.h"

#include <ucontext.h>

namespace emulated
{

struct fiber {
    ucontext_t context;
};

static struct fiber outside;

struct fiber *fiber_open(void (*entry)())
{
    struct fiber *f = new fiber();
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = (char *)stack_open() - STACK_LEAST;
    f->context.uc_stack.ss_size = STACK_LEAST;
    makecontext(&f->context, entry, 0);
    return f;
}

void fiber_change(struct fiber *from, struct fiber *to)
{
    if (!from)
        from = &outside;
    if (!to)
        to = &outside;
    swapcontext(&from->context, &to->context);
}

} // namespace emulated
