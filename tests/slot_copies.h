// slot_copies.h - visits that copy a range of the optimiser's state out to, or
// in from, whole vectors; ctx: float *slots[], one a slot, and before the first
// one for the parameters where those are in shards.

#ifndef TESTS_SLOT_COPIES_H
#define TESTS_SLOT_COPIES_H

#include <stddef.h>
#include <string.h>

static inline int copy_slot_out(void *ctx, int slot, size_t off, float *v,
                                size_t n)
{
    float **slots = ctx;
    memcpy(slots[slot] + off, v, n * sizeof *v);
    return 0;
}

static inline int copy_slot_in(void *ctx, int slot, size_t off, float *v,
                               size_t n)
{
    float **slots = ctx;
    memcpy(v, slots[slot] + off, n * sizeof *v);
    return 0;
}

#endif
