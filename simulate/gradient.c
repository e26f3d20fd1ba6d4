// gradient.c - makes the gradient: numbers whose sum is known, or, without
// payload, a range of addresses that needs no memory.

#include "simulate/exchange.h"

#include "base/base.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

// Elements are integers 0 .. VALUES - 1, so that their sums over all workers
// are exact in fp32.
enum { VALUES = 7 };

float gradient_value(int rank, size_t i)
{
    return (float)((i * 5 + (size_t)rank * 3) % VALUES);
}

float *gradient_open(const struct exchange *e)
{
    static float *common; // of all ranks, which are one process
    if (!e->payload && common)
        return common;
    if (!e->payload) {
        int access = e->run ? PROT_READ | PROT_WRITE : PROT_READ;
        void *p = mmap(NULL, e->n * sizeof(float), access,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED && e->run)
            common = p;
        if (p != MAP_FAILED)
            return p;
        fail("mmap of %zu elements: %s", e->n, strerror(errno));
        return NULL;
    }
    float *v = mem_alloc(e->n, sizeof *v);
    for (size_t i = 0; v && i < e->n; i++)
        v[i] = gradient_value(e->rank, i);
    return v;
}

int gradient_check(const struct exchange *e, const float *sums)
{
    for (size_t i = 0; e->payload && i < e->n; i++) {
        float want = 0;
        for (int r = 0; r < e->world; r++)
            want += gradient_value(r, i);
        if (sums[i] != want)
            return fail("rank %d: element %zu is %g, the sum is %g", e->rank, i,
                        (double)sums[i], (double)want);
    }
    return 0;
}

int gradient_same(const struct exchange *e, const float *sums, MPI_Comm workers)
{
    uint64_t mine = e->payload ? hash_bytes(sums, e->n * sizeof *sums) : 0;
    uint64_t first = mine;
    MPI_Bcast(&first, 1, MPI_UINT64_T, 0, workers);
    return mine == first
               ? 0
               : fail("rank %d: its sum is not that of rank 0", e->rank);
}

void gradient_close(const struct exchange *e, float *vector)
{
    if (e->payload)
        mem_free(vector);
    else if (vector && !e->run)
        munmap(vector, e->n * sizeof(float));
}
