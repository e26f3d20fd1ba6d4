// ring_wire.c - pieces of a vector in the wire's number format.

#include "horovod_ring/ring_wire.h"

#include "base/base.h"
#include "device/vector.h"

enum { BLOCK = 4096 }; // elements: 16 KiB stay in the first-level cache

int wire_open(struct wire *w, size_t largest, size_t piece)
{
    *w = (struct wire){.landing = mem_alloc(piece, 1)};
    if (!w->landing)
        return -1;
    if (largest == 0)
        return 0;
    w->scaled = mem_alloc(BLOCK, sizeof *w->scaled);
    for (int i = 0; i < WIRE_OPS; i++) {
        w->half[i] = mem_alloc(largest, sizeof *w->half[i]);
        if (!w->half[i] || !w->scaled)
            return -1;
    }
    return 0;
}

void wire_close(struct wire *w)
{
    mem_free(w->landing);
    mem_free(w->scaled);
    for (int i = 0; i < WIRE_OPS; i++)
        mem_free(w->half[i]);
    *w = (struct wire){0};
}

const void *wire_leave(struct wire *w, const struct group_vector *v, uint64_t k,
                       struct group_chunk piece, bool own, bool result)
{
    float *data = group_at(v, piece.off);
    if (!group_casts(v))
        return data;
    uint16_t *half = w->half[k % WIRE_OPS] + piece.off;
    if (own)
        vector_cast_scaled(half, v->wire, data, v->scale, piece.n);
    if (own && result)
        vector_cast(data, DTYPE_F32, half, v->wire, piece.n);
    return half;
}

void *wire_land(struct wire *w, const struct group_vector *v, uint64_t k,
                struct group_chunk piece, bool adds)
{
    if (group_casts(v))
        return w->half[k % WIRE_OPS] + piece.off;
    return adds ? w->landing : group_at(v, piece.off);
}

// Works block by block, so that the cast finds the results of the addition in
// the cache.
static void landed_half(struct wire *w, const struct group_vector *v,
                        float *data, uint16_t *half, size_t n, bool adds,
                        bool completes)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t len = n - i < BLOCK ? n - i : BLOCK;
        if (adds) {
            vector_cast_scaled(w->scaled, DTYPE_F32, data + i, v->scale, len);
            vector_add_into_wire(half + i, v->wire, w->scaled, len);
        }
        if (completes)
            vector_cast(data + i, DTYPE_F32, half + i, v->wire, len);
    }
}

void wire_landed(struct wire *w, const struct group_vector *v, uint64_t k,
                 struct group_chunk piece, bool adds, bool completes)
{
    void *data = group_at(v, piece.off);
    if (group_casts(v))
        landed_half(w, v, data, w->half[k % WIRE_OPS] + piece.off, piece.n,
                    adds, completes);
    else if (adds && v->type == DTYPE_F64)
        vector_add_doubles(data, w->landing, piece.n);
    else if (adds)
        vector_add(data, w->landing, DTYPE_F32, piece.n);
}
