// chunk.c - vectors that members exchange, and their chunks.

#include "group/group.h"

struct group_vector group_plain(void *data, size_t n, enum dtype type)
{
    return (struct group_vector){
        .data = data, .n = n, .type = type, .wire = type, .scale = 1};
}

struct group_vector group_floats(float *data, size_t n)
{
    return group_plain(data, n, DTYPE_F32);
}

struct group_vector group_bytes(void *data, size_t n)
{
    return group_plain(data, n, DTYPE_BYTE);
}

struct group_chunk group_chunk(size_t n, size_t grain, int size, int c)
{
    size_t grains = (n + grain - 1) / grain, w = (size_t)size, k = (size_t)c;
    size_t even = grains / w, more = grains % w;
    size_t from = (k * even + (k < more ? k : more)) * grain;
    size_t to = from + (even + (k < more)) * grain;
    from = from < n ? from : n;
    to = to < n ? to : n;
    return (struct group_chunk){.off = from, .n = to - from};
}

struct group_chunk group_chunk_of(const struct group_vector *v, size_t grain,
                                  int size, int c)
{
    struct group_chunk k = {0};
    if (!v->lengths)
        return group_chunk(v->n, grain, size, c);
    for (int i = 0; i < c; i++)
        k.off += v->lengths[i];
    k.n = v->lengths[c];
    return k;
}

size_t group_longest(const struct group_vector *v, size_t grain, int size)
{
    size_t longest = 0;
    for (int c = 0; c < size; c++) {
        size_t n = group_chunk_of(v, grain, size, c).n;
        longest = n > longest ? n : longest;
    }
    return longest;
}

size_t group_exchanged(const struct group_op *op, size_t grain, int rank,
                       int size, bool out)
{
    const struct group_vector *v = out ? &op->given : &op->vector;
    return v->n - group_chunk_of(v, grain, size, rank).n;
}

float group_scale(enum dtype wire, int size)
{
    float divisor = 1;
    while (dtype_bytes(wire) == 2 && divisor < (float)size)
        divisor *= 2;
    return 1 / divisor;
}
