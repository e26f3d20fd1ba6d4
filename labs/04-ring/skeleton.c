// ring.c - lab 4: v becomes the sum of all workers' v, on every worker.

#include "labs/04-ring/ring.h"

size_t ring_bytes(size_t n, int rank, int workers, enum lab_way way)
{
    (void)n;
    (void)rank;
    (void)workers;
    (void)way;
    return 0;
}

int lab_exchange(struct lab *l, float *v, size_t n)
{
    int w = l->workers;
    int next = (l->rank + 1) % w, last = (l->rank + w - 1) % w;
    float *pass = lab_alloc(l, n, sizeof *v), *in = lab_alloc(l, n, sizeof *v);
    if (!pass || !in)
        return -1;
    for (size_t i = 0; i < n; i++)
        pass[i] = v[i];
    // Passes on whole vectors, w-1 times, and adds the ones received.
    for (int m = 0; m < w - 1; m++) {
        if (lab_send(l, next, pass, n * sizeof *v) ||
            lab_recv(l, last, in, n * sizeof *v))
            return -1;
        for (size_t i = 0; i < n; i++) {
            v[i] += in[i];
            pass[i] = in[i];
        }
    }
    return 0;
}
