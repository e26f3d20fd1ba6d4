// bucket.c - cut the flat gradient into buckets, last layer first.
//
// Backward fills gradients from the end of the model to its start, so bucket 0
// is the *end* of the vector: it may travel while backward is still busy. With
// too small buckets latency adds up; with too large ones nothing overlaps.

#include "sync/bucket.h"

#include "base/base.h"

enum { MIB = 1048576 / sizeof(float) }; // elements

int bucket_cut(struct bucket *out, int max, size_t n, size_t first, size_t size)
{
    CHECK(first > 0 && size > 0);
    int count = 0;
    for (size_t end = n; end > 0; count++) {
        if (count == max)
            return fail("bucket: %zu elements by %zu need more than %d "
                        "buckets; try: a larger bucket_mb=",
                        n, size, max);
        size_t most = count ? size : first;
        size_t len = end < most ? end : most;
        end -= len;
        out[count] = (struct bucket){.off = end, .n = len};
    }
    return count;
}

size_t bucket_first(size_t n, size_t size)
{
    return size >= n ? n : size < MIB ? size : MIB;
}

size_t bucket_usual(size_t n, int hops)
{
    const size_t most = (size_t)25 * MIB;
    size_t share = (n + 39) / 40, least = (size_t)hops * MIB / 4;
    share = share < most ? share : most;
    least = least > MIB ? least : MIB;
    return share > least ? share : least;
}

int bucket_align(struct bucket **out, const struct bucket *buckets, int n,
                 size_t grain)
{
    struct bucket *aligned = *out = mem_alloc((size_t)n, sizeof *aligned);
    size_t end = buckets[0].off + buckets[0].n;
    int count = 0;
    for (int b = 0; aligned && b < n; b++) {
        size_t off = (buckets[b].off + grain - 1) / grain * grain;
        if (off >= end)
            continue;
        aligned[count++] = (struct bucket){.off = off, .n = end - off};
        end = off;
    }
    return aligned ? count : -1;
}
