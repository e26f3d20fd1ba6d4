// host_memory.c - the highest rate of this machine's memory for the accesses of
// an all-reduce.

#include "bench/host_memory.h"

#include "base/base.h"

#include <string.h>

int memory_open(struct memory *m, size_t count)
{
    *m = (struct memory){.n = (count + 1) / 2};
    m->x = mem_alloc(m->n, sizeof *m->x);
    m->y = mem_alloc(m->n, sizeof *m->y);
    return m->x && m->y ? 0 : -1;
}

void memory_close(struct memory *m)
{
    mem_free(m->x);
    mem_free(m->y);
    *m = (struct memory){0};
}

void memory_fill(struct memory *m)
{
    memset(m->x, 0, m->n * sizeof *m->x);
    memset(m->y, 0, m->n * sizeof *m->y);
}

void memory_run(struct memory *m)
{
    float *restrict x = m->x, *restrict y = m->y;
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < m->n; i++) {
        float s = x[i] + y[i];
        x[i] = s;
        y[i] = s;
    }
}
