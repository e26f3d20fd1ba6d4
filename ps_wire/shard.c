// shard.c - divides the vector into rows from its end, and each row evenly
// among the servers.

#include "ps_wire/shard.h"

#include "base/base.h"

enum { MAX_ROWS = 1 << 24 };

size_t shard_width(size_t n, int servers, int slice_kb)
{
    size_t most = (n + (size_t)servers - 1) / (size_t)servers;
    size_t slice = (size_t)slice_kb * 1024 / sizeof(float);
    return slice < most ? slice : most;
}

int shard_make(struct shard *s, size_t n, size_t slice, int servers, int index)
{
    CHECK(n > 0 && slice > 0 && servers > 0 && index >= 0 && index < servers);
    size_t width = slice * (size_t)servers, rows = (n + width - 1) / width;
    if (rows > MAX_ROWS)
        return fail("%zu elements in slices of %zu make %zu rows; try: a "
                    "larger slice_kb",
                    n, slice, rows);
    *s = (struct shard){n, slice, servers, index, (int)rows};
    return 0;
}

// Where the part of server `index` begins in a row of `len` elements.
static size_t cut(size_t len, int index, int servers)
{
    size_t each = len / (size_t)servers, rest = len % (size_t)servers;
    size_t i = (size_t)index;
    return each * i + (i < rest ? i : rest);
}

struct slice shard_slice(const struct shard *s, int row)
{
    CHECK(row >= 0 && row < s->rows);
    size_t width = s->slice * (size_t)s->servers;
    size_t end = s->n - (size_t)row * width;
    size_t len = end < width ? end : width;
    size_t from = cut(len, s->index, s->servers);
    return (struct slice){
        .off = end - len + from,
        .n = cut(len, s->index + 1, s->servers) - from,
        .local = (size_t)row * s->slice, // all rows before this one are full
    };
}

int shard_rows(const struct shard *s)
{
    return s->rows - (shard_slice(s, s->rows - 1).n == 0);
}

size_t shard_elements(const struct shard *s)
{
    struct slice last = shard_slice(s, s->rows - 1);
    return last.local + last.n;
}
