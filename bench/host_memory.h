// host_memory.h - this machine's memory at its best, in an all-reduce's
// pattern.
//
// An all-reduce of S bytes in one pass reads and writes every worker's vector
// once: S bytes of each kind a worker. Here every worker moves as much by the
// plainest loop, s = x + y; x = s; y = s, over two vectors of its own of S/2
// bytes each, all workers at once.

#ifndef BENCH_HOST_MEMORY_H
#define BENCH_HOST_MEMORY_H

#include <stddef.h>

struct memory {
    float *x, *y;
    size_t n; // of each
};

// For vectors of `count` elements that all workers have. 0, or -1 after fail().
int memory_open(struct memory *m, size_t count);
void memory_close(struct memory *m);

// Write the vectors, as backward would; then move this worker's share.
void memory_fill(struct memory *m);
void memory_run(struct memory *m);

#endif
