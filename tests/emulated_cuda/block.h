// block.h - one block of threads after the other, on one thread of the host.
//
// Each thread of a block is a fiber, which runs until it meets others: at
// __syncthreads(), or at what a warp does together. Threads that never meet run
// to their end one by one, as calls. In between they run in the order of their
// numbers, or, with EMULATED_CUDA_ORDER=backward, the other way round; so who
// reads what a neighbour has not certainly written reads something else in one
// of the two. Shared memory is NaN when a block begins.

#ifndef EMULATED_CUDA_BLOCK_H
#define EMULATED_CUDA_BLOCK_H

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

// End the program: which kernel, block and thread, and why.
[[noreturn]] void stop(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

// What the lanes of a warp hand each other: each writes before they meet and
// reads behind that; the next meeting has a room of its own.
struct room {
    uint64_t words[32];
    float a[16][16], b[8][16]; // factors of a product of tiles, b transposed
    uint16_t rows[32][8];      // ldmatrix: a row of eight numbers
};

// The thread that runs: its lane, and the room of its warp's next meeting.
struct self {
    unsigned lane;
    struct room *room;
};
extern struct self self;

// Wait for the others of the warp: all 32 must be there, at the same thing.
void meet_warp(const char *what, unsigned mask);
void meet_block();

// The shared variable of this block that `id` stands for.
void *shared(const void *id, size_t bytes, size_t align);
float *dynamic_shared();
size_t shared_address(const void *p);
void *shared_at(size_t address);

// This thread's copies into shared memory, `n` bytes and zeros up to `room`: on
// their way, with NaN where they go, until it waits for them. It must not end
// before that.
void copy_later(void *to, const void *from, size_t n, size_t room);
void copies_arrive();

struct shape {
    dim3 grid, block;
    size_t shared;
    void *stream;
};

// Ask the stream for a kernel; cudaGetLastError() knows what is wrong with it.
void ask(const char *name, const struct shape &shape,
         std::function<void()> thread);

// Now (runtime.cpp calls it when the stream has come so far).
void run_grid(const char *name, const struct shape &shape,
              const std::function<void()> &thread);

// kernel<<<shape>>>(args...), whose arguments are copied here and now.
template <typename Kernel, typename... Args>
void launch(const char *name, const struct shape &shape, Kernel kernel,
            Args... args)
{
    auto copies = std::make_tuple(args...);
    ask(name, shape, [=] { std::apply(kernel, copies); });
}

} // namespace emulated

#endif
