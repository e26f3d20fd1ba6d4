// ring.h - lab 4: the functions that ring.c defines.

#ifndef LABS_RING_H
#define LABS_RING_H

#include "labs/lab.h"

// v, n floats, becomes the sum of all workers' v, on every worker. n may be 0,
// or less than the number of workers. All workers call it with the same n.
// Returns 0. If a neighbour stops responding, names it with lab_missing() and
// returns -1.
int lab_exchange(struct lab *l, float *v, size_t n);

// Returns the bytes that worker `rank` sends (LAB_OUT) or receives (LAB_IN)
// while `workers` workers sum n floats each, by a formula.
enum lab_way { LAB_OUT, LAB_IN };
size_t ring_bytes(size_t n, int rank, int workers, enum lab_way way);

#endif
