// squeeze.c - the table of compressors, and the law of their bytes.

#include "squeeze/squeeze.h"

#include "base/base.h"
#include "group/group.h"

// In the order of enum squeeze_kind.
static const struct squeeze_ops *const rows[] = {
    NULL,
    &squeeze_topk,
    &squeeze_int8,
    &squeeze_sign,
};

const struct squeeze_ops *squeeze_find(enum squeeze_kind kind)
{
    CHECK((size_t)kind < sizeof rows / sizeof *rows);
    return rows[kind];
}

size_t squeeze_message(const struct sync_settings *s, int world, size_t n)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    return ops->bytes(s, ops->twice ? group_chunk(n, 1, world, 0).n : n);
}

uint64_t squeeze_bytes(const struct sync_settings *s, int world, size_t n)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    return (uint64_t)(world - 1) * (ops->twice ? 2 : 1) *
           squeeze_message(s, world, n);
}

struct law squeeze_law(const struct sync_settings *s, int world, double params)
{
    double bytes = (double)squeeze_bytes(s, world, (size_t)params);
    return (struct law){.hops = world - 1 + squeeze_find(s->squeeze)->twice,
                        .share = bytes / (sizeof(float) * params)};
}
