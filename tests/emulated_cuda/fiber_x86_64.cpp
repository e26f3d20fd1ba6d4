// fiber_x86_64.cpp - fibers in assembly: they save the stack pointer and the
// address at which to continue.
//
// A fiber continues with a jump, not a return: all fibers continue at the same
// address, so the processor predicts it.

#include "tests/emulated_cuda/fiber.h"
#include "tests/emulated_cuda/stack.h"

#include <stdint.h>

namespace emulated
{

struct fiber {
    void *sp;
};

static struct fiber outside;

struct fiber *fiber_open(void (*entry)())
{
    uint64_t *sp = (uint64_t *)stack_open() - 2;
    sp[1] = 0; // no return address
    sp[0] = (uint64_t)(uintptr_t)entry;
    return new fiber{sp};
}

__attribute__((noinline)) void fiber_change(struct fiber *from,
                                            struct fiber *to)
{
    void **left = from ? &from->sp : &outside.sp;
    void *next = to ? to->sp : outside.sp;
    // The compiler may use 128 bytes below the stack pointer.
    asm volatile("lea -128(%%rsp), %%rsp\n\t"
                 "push %%rbp\n\t"
                 "lea 1f(%%rip), %%rax\n\t"
                 "push %%rax\n\t"
                 "mov %%rsp, (%0)\n\t"
                 "mov %1, %%rsp\n\t"
                 "pop %%rax\n\t"
                 "jmp *%%rax\n"
                 "1:\n\t"
                 "pop %%rbp\n\t"
                 "lea 128(%%rsp), %%rsp"
                 : "+D"(left), "+S"(next)
                 :
                 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12",
                   "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2",
                   "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

} // namespace emulated
