// ask.c - lab 4: the grader's calls of the functions of ring.c.

#include "labs/ask.h"

#include "labs/04-ring/ring.h"

int lab_exchange(struct lab *l, float *v, size_t n)
{
    return (int)ask(l, 0, &(struct part){v, n * sizeof *v, PART_BOTH}, 1, NULL,
                    NULL);
}

size_t ring_bytes(size_t n, int rank, int workers, enum lab_way way)
{
    int32_t numbers[] = {rank, workers, (int32_t)way};
    struct part parts[] = {{&n, sizeof n, PART_IN},
                           {numbers, sizeof numbers, PART_IN}};
    return (size_t)ask(NULL, 1, parts, 2, NULL, NULL);
}
