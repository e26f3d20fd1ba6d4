// block.h - runs the blocks of a kernel one after the other, on one thread of
// the host.
//
// Each thread of a block is a fiber. It runs until it must wait for others: at
// __syncthreads(), or at an instruction that a warp executes together. Threads
// that never wait run one by one to their end, as function calls. Threads run
// in the order of their numbers or, with EMULATED_CUDA_ORDER=backward, in the
// opposite order. So if a thread reads a number that a neighbour might not have
// written yet, it reads a wrong number in one of the two orders. Shared memory
// is NaN when a block begins.

#pragma once

#include <functional>
#include <stddef.h>
#include <stdint.h>
#include <tuple>

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

struct uint3 {
    unsigned x, y, z;
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace emulated
{

// Ends the program with a line that says which kernel, block and thread, and
// why.
[[noreturn]] void stop(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

// What the lanes of a warp exchange. Each lane writes before meet_warp() and
// reads after it. Two of these alternate, so that the next exchange does not
// overwrite what a lane still reads.
struct exchange {
    uint64_t words[32];
    float a[16][16], b[8][16]; // factors of a product of tiles, b transposed
    uint16_t rows[32][8];      // ldmatrix: a row of eight numbers
};

// The thread that runs: its lane, and its warp's next exchange.
struct self {
    unsigned lane;
    struct exchange *exchange;
};
extern struct self self;

// meet_warp() waits for the other threads of the warp: all 32 must wait at the
// same instruction. meet_block() waits for the other threads of the block.
void meet_warp(const char *what, unsigned mask);
void meet_block();

// shared() returns this block's shared variable with the identity `id`; the
// first call allocates it. dynamic_shared() returns the block's dynamic shared
// memory. The last two translate between pointers and 32-bit addresses of
// shared memory.
void *shared(const void *id, size_t bytes, size_t align);
float *dynamic_shared();
size_t shared_address(const void *p);
void *shared_at(size_t address);

// copy_later() begins an asynchronous copy of this thread into shared memory:
// `n` bytes, then zeros up to `space`. The destination is NaN until the thread
// waits for its copies, which calls copies_arrive(). A thread must not end
// before that.
void copy_later(void *to, const void *from, size_t n, size_t space);
void copies_arrive();

struct shape {
    dim3 grid, block;
    size_t shared;
    void *stream;
};

// Puts a kernel into its stream. If its shape is invalid, cudaGetLastError()
// returns the error.
void ask(const char *name, const struct shape &shape,
         std::function<void()> thread);

// Runs a kernel now. runtime.cpp calls it when the stream reaches the kernel.
void run_grid(const char *name, const struct shape &shape,
              const std::function<void()> &thread);

// kernel<<<shape>>>(args...). The arguments are copied at once.
template <typename Kernel, typename... Args>
void launch(const char *name, const struct shape &shape, Kernel kernel,
            Args... args)
{
    auto copies = std::make_tuple(args...);
    ask(name, shape, [=] { std::apply(kernel, copies); });
}

} // namespace emulated
