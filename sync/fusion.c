// fusion.c - joins buckets that are next to each other, up to a size.

#include "sync/fusion.h"

#include "base/base.h"

int fusion_cut(struct bucket **fused, const struct bucket *buckets, int n,
               double mb)
{
    size_t most = (size_t)(mb * 1024 * 1024 / sizeof(float));
    int count = 0;
    struct bucket *out = *fused = mem_alloc((size_t)n, sizeof *out);
    if (!out)
        return -1;
    for (int b = 0; b < n; b++) {
        if (b == 0 || out[count - 1].n + buckets[b].n > most) {
            out[count++] = buckets[b];
            continue;
        }
        CHECK(buckets[b].off + buckets[b].n == out[count - 1].off);
        out[count - 1].off = buckets[b].off;
        out[count - 1].n += buckets[b].n;
    }
    return count;
}

int fusion_align(struct bucket *fused, int n, size_t grain)
{
    size_t end = fused[0].off + fused[0].n;
    int count = 0;
    for (int b = 0; b < n; b++) {
        size_t off = (fused[b].off + grain - 1) / grain * grain;
        if (off >= end)
            continue;
        fused[count++] = (struct bucket){.off = off, .n = end - off};
        end = off;
    }
    return count;
}
