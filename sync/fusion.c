// fusion.c - join buckets that are next to each other, up to a size.

#include "sync/fusion.h"

#include "base/base.h"

int fusion_next(struct bucket *out, const struct bucket *buckets, int n,
                size_t most)
{
    int count = 1;
    *out = buckets[0];
    for (; count < n && out->n + buckets[count].n <= most; count++) {
        CHECK(buckets[count].off + buckets[count].n == out->off);
        out->off = buckets[count].off;
        out->n += buckets[count].n;
    }
    return count;
}

int fusion_cut(struct bucket **fused, const struct bucket *buckets, int n,
               double mb)
{
    size_t most = (size_t)(mb * 1024 * 1024 / sizeof(float));
    int count = 0;
    *fused = mem_alloc((size_t)n, sizeof **fused);
    if (!*fused)
        return -1;
    for (int b = 0; b < n; count++)
        b += fusion_next(*fused + count, buckets + b, n - b, most);
    return count;
}
