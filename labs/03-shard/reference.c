// reference.c - lab 3: rows from the end, each cut evenly over the servers.

#include "labs/03-shard/shard.h"

enum { MAX_ROWS = 1 << 24 };

int shard_make(struct shard *s, size_t n, size_t slice, int servers, int index)
{
    size_t width = slice * (size_t)servers, rows = (n + width - 1) / width;
    if (rows > MAX_ROWS)
        return -1;
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
    size_t width = s->slice * (size_t)s->servers;
    size_t begin = (size_t)row * width, left = s->n - begin;
    size_t len = left < width ? left : width;
    size_t from = cut(len, s->index, s->servers);
    size_t n = cut(len, s->index + 1, s->servers) - from;
    size_t off = s->n - begin - len;
    return (struct slice){off + from, n, (size_t)row * s->slice};
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
