// second.c - lab 3, written from the handout alone.

#include "labs/03-shard/shard.h"

// The number of whole rows. *left: the elements of the short last row; 0: there
// is none.
static size_t whole(const struct shard *s, size_t *left)
{
    size_t rows = s->n / (size_t)s->servers / s->slice;
    *left = s->n - rows * s->slice * (size_t)s->servers;
    return rows;
}

int shard_make(struct shard *s, size_t n, size_t slice, int servers, int index)
{
    *s = (struct shard){n, slice, servers, index, 0};
    size_t left, rows = whole(s, &left);
    rows += left > 0;
    if (rows > 1 << 24)
        return -1;
    s->rows = (int)rows;
    return 0;
}

struct slice shard_slice(const struct shard *s, int row)
{
    size_t left, rows = whole(s, &left), i = (size_t)s->index;
    struct slice out = {.local = (size_t)row * s->slice};
    if ((size_t)row < rows) {
        size_t end = s->n - (size_t)row * s->slice * (size_t)s->servers;
        out.n = s->slice;
        out.off = end - ((size_t)s->servers - i) * s->slice;
        return out;
    }
    size_t each = left / (size_t)s->servers, more = left % (size_t)s->servers;
    out.n = each + (i < more);
    out.off = each * i + (i < more ? i : more);
    return out;
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
