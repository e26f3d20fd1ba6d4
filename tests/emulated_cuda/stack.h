// stack.h - memory for a fiber's stack, with guard pages below it. Stacks are
// kept until the program ends.

#pragma once

#include "base/base.h"

#include <sys/mman.h>

namespace emulated
{

enum {
    STACK_BYTES = 256 << 10,
    STACK_GUARD = 64 << 10,
    STACK_LEAST = STACK_BYTES - STACK_GUARD
};

// Returns the end of a new stack, which grows downwards. The ends of different
// stacks have different offsets in a page, so that stacks do not compete for
// the same lines of the cache.
inline void *stack_open()
{
    static unsigned count;
    size_t shift = count++ * 832 % STACK_GUARD;
    char *p =
        (char *)mmap(nullptr, STACK_GUARD + STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(p != MAP_FAILED && mprotect(p, STACK_GUARD, PROT_NONE) == 0);
    return p + STACK_GUARD + STACK_BYTES - shift;
}

} // namespace emulated
