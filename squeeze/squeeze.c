// squeeze.c - the table of compressors, and the bytes of their messages.

#include "squeeze/squeeze.h"

#include "base/base.h"
#include "base/rng.h"
#include "group/group.h"

static const struct squeeze_ops *const rows[] = {
    NULL,
#define COMPRESSOR(kind, word, ops) &ops,
#include "config/compressors.def"
};

const struct squeeze_ops *squeeze_find(enum squeeze_kind kind)
{
    CHECK((size_t)kind < sizeof rows / sizeof *rows);
    return rows[kind];
}

uint64_t squeeze_whole_steps(const struct sync_settings *s)
{
    return (uint64_t)(s->freeze ? s->freeze : s->squeeze_after);
}

size_t squeeze_message(const struct sync_settings *s, int world, size_t n)
{
    const struct squeeze_ops *ops = squeeze_find(s->squeeze);
    return ops->bytes(s, ops->twice ? group_chunk(n, 1, world, 0).n : n);
}

uint64_t squeeze_stream(uint64_t seed, uint64_t step, int rank, bool sum,
                        size_t off)
{
    uint64_t key = rng_key(seed, step);
    return rng_key(rng_key(key, 2 * (uint64_t)rank + sum), off);
}
