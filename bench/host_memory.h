// host_memory.h - the best rate of this machine's memory, with the accesses of
// an all-reduce.
//
// An all-reduce of S bytes in one pass reads and writes every worker's vector
// once: each worker reads S bytes and writes S bytes. Here every worker moves
// as many bytes in the simplest loop, s = x + y; x = s; y = s, over two vectors
// of its own of S/2 bytes each. All workers do this at once.

#pragma once

#include <stddef.h>

struct memory {
    float *x, *y;
    size_t n; // of each
};

// Allocates the vectors for an all-reduce of `count` elements. Returns 0, or -1
// after fail(). Call memory_close() in both cases.
int memory_open(struct memory *m, size_t count);
void memory_close(struct memory *m);

// memory_fill() writes the vectors, as backward would. memory_run() then moves
// this worker's share of the bytes.
void memory_fill(struct memory *m);
void memory_run(struct memory *m);
