// block.cpp - the order in which the threads of a block run.
//
//     a pass over warp 0: lane 0 until it must wait, then lane 1, .. lane 31
//     If all lanes wait at the same shuffle: another pass from lane 0.
//     If all are at __syncthreads() or at their end: warp 1, ..
//     After the last warp, all threads continue behind __syncthreads().
//
// A thread that stops finds the next thread and changes to its fiber at once. A
// thread gets a fiber when it begins, and a fiber whose thread has ended is
// used again. So a kernel in which no thread waits is a loop on one fiber.

#include "tests/emulated_cuda/block.h"

#include "base/base.h"
#include "tests/emulated_cuda/address.h"
#include "tests/emulated_cuda/fiber.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated
{

static constexpr unsigned WARP = 32, MAX_THREADS = 1024;

static const char at_barrier[] = "__syncthreads()";

struct copy {
    void *to;
    const void *from;
    size_t n, space;
};

struct thread {
    uint3 index;
    std::vector<struct copy> copies; // begun, not waited for
    struct fiber *fiber;             // NULL: it has not begun
    const char *at;                  // what it waits at
    bool done;
};

// The block that runs, and its kernel.
static struct {
    const char *kernel;
    const std::function<void()> *body;
    bool backward;
    unsigned threads, warps, live; // live: threads that have not ended
    unsigned me;                   // the thread that runs
    struct thread thread[MAX_THREADS];
    unsigned warp;       // of the pass, counted in the order of running
    unsigned next, left; // the next thread of the pass, threads left in it
    struct fiber *idle[MAX_THREADS];
    unsigned idles;
    struct exchange exchanges[2];
    unsigned meetings; // exchanges so far
} now;

struct self self;

void stop(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log_line("emulated CUDA: %s, block (%u, %u, %u), thread (%u, %u, %u): %s",
             now.kernel ? now.kernel : "no kernel", blockIdx.x, blockIdx.y,
             blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, text);
    abort();
}

// ---- the next thread

static unsigned in_order(unsigned i, unsigned n)
{
    return now.backward ? n - 1 - i : i;
}

static inline void become(unsigned t)
{
    now.me = t;
    self.lane = t % WARP;
    threadIdx = now.thread[t].index;
}

static unsigned first_of_warp()
{
    return in_order(now.warp, now.warps) * WARP;
}

static unsigned warp_size()
{
    unsigned behind = now.threads - first_of_warp();
    return behind < WARP ? behind : WARP;
}

static void begin_pass()
{
    now.left = warp_size();
    now.next = first_of_warp() + in_order(0, now.left);
    self.exchange = &now.exchanges[now.meetings % 2];
}

// All threads of a warp have stopped. True if they wait at an instruction of
// the warp.
static bool warp_met()
{
    const char *at = nullptr;
    unsigned first = first_of_warp(), n = warp_size(), gone = 0;
    for (unsigned t = first; t < first + n; t++) {
        if (now.thread[t].done) {
            gone++;
            continue;
        }
        if (at && now.thread[t].at != at) {
            become(t);
            stop("is at %s, others of its warp at %s", now.thread[t].at, at);
        }
        at = now.thread[t].at;
    }
    if (!at || at == at_barrier)
        return false;
    if (gone || n < WARP)
        stop("waits at %s for %u lanes that are not there", at,
             gone + WARP - n);
    now.meetings++;
    return true;
}

// Begins the next pass, after one over a warp. False: the block is done.
static bool next_pass()
{
    if (!warp_met() && ++now.warp == now.warps) {
        if (!now.live)
            return false;
        now.warp = 0; // all live threads are at the barrier
    }
    begin_pass();
    return true;
}

// The thread to run next; -1 when the block is done.
static inline int following()
{
    do {
        while (now.left > 0) {
            unsigned t = now.next;
            now.left--;
            now.next += now.backward ? -1u : 1u;
            if (!now.thread[t].done)
                return (int)t;
        }
    } while (next_pass());
    return -1;
}

static void run_threads();

// Changes from this fiber to thread `next`; -1: to the end of the block.
static void change_to(struct fiber *from, int next)
{
    if (next < 0) {
        fiber_change(from, nullptr);
        return;
    }
    struct thread *t = &now.thread[next];
    become((unsigned)next);
    if (!t->fiber) {
        t->fiber = now.idles ? now.idle[--now.idles] : fiber_open(run_threads);
    }
    if (t->fiber != from)
        fiber_change(from, t->fiber);
}

// The body of a fiber: runs one thread after the other, as long as the next
// thread has not begun.
static void run_threads()
{
    for (;;) {
        struct thread *t = &now.thread[now.me];
        struct fiber *mine = t->fiber;
        (*now.body)();
        if (!t->copies.empty())
            stop("ends with %zu copies on their way", t->copies.size());
        t->done = true;
        now.live--;
        now.idle[now.idles++] = mine;
        change_to(mine, following());
    }
}

static void wait_at(const char *what)
{
    struct thread *t = &now.thread[now.me];
    t->at = what;
    unsigned me = now.me;
    int next = following();
    if ((unsigned)next == me)
        return;
    change_to(t->fiber, next);
}

void meet_warp(const char *what, unsigned mask)
{
    if (mask != 0xffffffff)
        stop("%s with mask %#x: only whole warps are emulated", what, mask);
    wait_at(what);
}

void meet_block()
{
    wait_at(at_barrier);
}

// ---- shared memory: static and dynamic together have 48 KiB a block

static constexpr size_t SHARED = 48 << 10, SPACE = 2 * SHARED, GAP = 64;

alignas(256) static char memory[SPACE];
static size_t used, end; // bytes of variables; the same with gaps between them
static std::vector<std::pair<const void *, char *>> variables;
static float *dynamic;

static char *alloc_shared(size_t bytes, size_t align)
{
    size_t at = (end + align - 1) / align * align;
    used += bytes;
    end = at + bytes + GAP;
    if (used > SHARED || end > SPACE)
        stop("%zu bytes of shared memory; without asking, a block has %zu",
             used, SHARED);
    unpoison(memory + at, bytes);
    memset(memory + at, 0xff, bytes);
    return memory + at;
}

static void clear_shared(size_t bytes)
{
    used = end = 0;
    variables.clear();
    poison(memory, SPACE);
    dynamic = (float *)alloc_shared(bytes, 16);
}

void *shared(const void *id, size_t bytes, size_t align)
{
    for (auto &v : variables)
        if (v.first == id)
            return v.second;
    variables.push_back({id, alloc_shared(bytes, align)});
    return variables.back().second;
}

float *dynamic_shared()
{
    return dynamic;
}

size_t shared_address(const void *p)
{
    size_t at = (size_t)((const char *)p - memory);
    if (at >= SPACE)
        stop("%p is not in shared memory", p);
    return at;
}

void *shared_at(size_t address)
{
    if (address >= SPACE)
        stop("%zu is not in shared memory", address);
    return memory + address;
}

// ---- asynchronous copies

void copy_later(void *to, const void *from, size_t n, size_t space)
{
    memset(to, 0xff, space);
    now.thread[now.me].copies.push_back({to, from, n, space});
}

void copies_arrive()
{
    for (const struct copy &c : now.thread[now.me].copies) {
        memcpy(c.to, c.from, c.n);
        memset((char *)c.to + c.n, 0, c.space - c.n);
    }
    now.thread[now.me].copies.clear();
}

// ---- grids

static void run_block()
{
    for (unsigned t = 0; t < now.threads; t++) {
        now.thread[t].fiber = nullptr;
        now.thread[t].done = false;
    }
    now.warp = 0;
    now.live = now.threads;
    begin_pass();
    change_to(nullptr, following());
}

void run_grid(const char *name, const struct shape &s,
              const std::function<void()> &thread)
{
    const char *order = getenv("EMULATED_CUDA_ORDER");
    unsigned blocks = s.grid.x * s.grid.y * s.grid.z;
    now.kernel = name;
    now.body = &thread;
    now.backward = order && !strcmp(order, "backward");
    gridDim = s.grid;
    blockDim = s.block;
    now.threads = blockDim.x * blockDim.y * blockDim.z;
    now.warps = (now.threads + WARP - 1) / WARP;
    for (unsigned t = 0; t < now.threads; t++) {
        unsigned row = t / blockDim.x;
        now.thread[t].index = {t % blockDim.x, row % blockDim.y,
                               row / blockDim.y};
    }
    for (unsigned i = 0; i < blocks; i++) {
        unsigned b = in_order(i, blocks), row = b / gridDim.x;
        blockIdx = {b % gridDim.x, row % gridDim.y, row / gridDim.y};
        clear_shared(s.shared);
        run_block();
    }
    unpoison(memory, SPACE);
    now.kernel = nullptr;
}

} // namespace emulated
