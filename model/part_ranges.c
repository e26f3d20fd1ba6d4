// part_ranges.c - where the whole has the elements of a stage's vector.

#include "model/part.h"

// The range's share of one block, whose elements from `off` on the whole has
// from `at` on.
static int visit(size_t off, size_t n, size_t block, size_t len, size_t at,
                 part_range *fn, void *ctx)
{
    size_t from = off > block ? off : block, to = off + n;
    to = to < block + len ? to : block + len;
    return from < to ? fn(ctx, from, to - from, at + from - block) : 0;
}

int part_ranges(const struct model_config *c, size_t off, size_t n,
                part_range *fn, void *ctx)
{
    struct model_config whole = part_whole(c);
    int rc = 0, last = model_nblocks(c) - 1;
    for (int b = 0; !rc && b <= last; b++) {
        size_t block, len, at, all;
        model_block(c, b, &block, &len);
        int in_whole = b == 0      ? 0
                       : b == last ? model_nblocks(&whole) - 1
                                   : 1 + part_layer(c, b - 1);
        model_block(&whole, in_whole, &at, &all);
        rc = visit(off, n, block, len, at, fn, ctx);
    }
    return rc;
}
