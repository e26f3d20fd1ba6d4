// bucket.c - cut the flat gradient into buckets, last layer first.
//
// Backward fills gradients from the end of the model to its start, so bucket 0
// is the *end* of the vector: it may travel while backward is still busy. With
// too small buckets latency adds up; with too large ones nothing overlaps.

#include "sync/bucket.h"

#include "base/base.h"

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

size_t bucket_usual(size_t n)
{
    const size_t mib = 1048576 / sizeof(float);
    size_t share = (n + 39) / 40;
    return share < mib ? mib : share > 25 * mib ? 25 * mib : share;
}
