// topk.h - lab 8: what topk.c defines.

#ifndef LABS_TOPK_H
#define LABS_TOPK_H

#include "labs/lab.h"

// An element as it travels: 8 bytes.
struct entry {
    uint32_t index;
    float value;
};

// g, n gradients, are added to what is owed since earlier steps. The k elements
// of the sums with the largest magnitude go to out[0 .. k-1], in any order, and
// nothing more is owed there. The rest stays owed. Of equal magnitudes the
// lower index goes first. NaN counts as larger than any number: it must not
// hide. 1 <= k <= n.
void topk_pack(const float *g, float *owed, size_t n, size_t k,
               struct entry *out);

// sum, n floats, becomes the sum of what all workers' topk_pack() of their g
// and owed gives, on every worker, and 0 where nobody sends anything. Values of
// one index are added in the order of the workers.
int lab_exchange(struct lab *l, const float *g, float *owed, float *sum,
                 size_t n, size_t k);

#endif
