// topk.h - lab 8: the functions that topk.c defines.

#ifndef LABS_TOPK_H
#define LABS_TOPK_H

#include "labs/lab.h"

// An element in a message: 8 bytes.
struct entry {
    uint32_t index;
    float value;
};

// Adds g, n gradients, to owed, n elements that earlier steps did not send.
// Then copies the k elements of owed with the largest magnitude to out[0 ..
// k-1], in any order, and sets them to 0 in owed. Of equal magnitudes the
// lower index goes first. NaN counts as larger than any number, so that it is
// sent. 1 <= k <= n.
void topk_pack(const float *g, float *owed, size_t n, size_t k,
               struct entry *out);

// Calls topk_pack(), and exchanges the entries with all workers. sum, n floats,
// becomes the sum of all workers' entries, on every worker, and 0 at an index
// that no worker sends. Values of one index are added in the order of the
// workers. Returns 0 or -1.
int lab_exchange(struct lab *l, const float *g, float *owed, float *sum,
                 size_t n, size_t k);

#endif
