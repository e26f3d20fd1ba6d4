// slot_copies.h - functions for sync_save() and sync_load() that copy a range
// of the optimiser's state to or from whole vectors.
//
// ctx is float *slots[]: a vector for each slot. If the parameters are in
// shards, they are slot -1 (SYNC_PARAMS), and slots[-1] is their vector.

#pragma once

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
