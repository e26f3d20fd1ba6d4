// topk.c - lab 8: the largest gradients travel, and the others are owed.

#include "labs/08-topk/topk.h"

// Sends the first k elements, whatever they are.
void topk_pack(const float *g, float *owed, size_t n, size_t k,
               struct entry *out)
{
    for (size_t i = 0; i < n; i++) {
        owed[i] += g[i];
        if (i < k) {
            out[i] = (struct entry){(uint32_t)i, owed[i]};
            owed[i] = 0;
        }
    }
}

// Adds up its own entries, and receives nothing.
int lab_exchange(struct lab *l, const float *g, float *owed, float *sum,
                 size_t n, size_t k)
{
    struct entry *mine = lab_alloc(l, k, sizeof *mine);
    if (!mine)
        return -1;
    topk_pack(g, owed, n, k, mine);
    for (size_t i = 0; i < n; i++)
        sum[i] = 0;
    for (size_t i = 0; i < k; i++)
        sum[mine[i].index] += mine[i].value;
    return 0;
}
