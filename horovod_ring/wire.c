// wire.c - pieces of a vector in the wire's number format.

#include "horovod_ring/wire.h"

#include "base/base.h"
#include "device/vector.h"

enum { BLOCK = 4096 }; // elements: 16 KiB stay in the nearest cache

int wire_open(struct wire *w, enum dtype type, int world, size_t most,
              size_t piece)
{
    *w = (struct wire){.type = type, .divisor = 1};
    if (type == DTYPE_F32) {
        w->landing = mem_alloc(piece, sizeof *w->landing);
        return w->landing ? 0 : -1;
    }
    while (w->divisor < (float)world)
        w->divisor *= 2;
    w->scaled = mem_alloc(BLOCK, sizeof *w->scaled);
    for (int i = 0; i < WIRE_TASKS; i++) {
        w->own[i] = mem_alloc(most, dtype_bytes(type));
        if (!w->own[i] || !w->scaled)
            return -1;
    }
    return 0;
}

void wire_close(struct wire *w)
{
    mem_free(w->landing);
    mem_free(w->scaled);
    for (int i = 0; i < WIRE_TASKS; i++)
        mem_free(w->own[i]);
    *w = (struct wire){0};
}

enum dtype wire_type(const struct wire *w, const struct task *t)
{
    return t->bcast ? DTYPE_F32 : w->type;
}

static bool narrow(const struct wire *w, const struct task *t)
{
    return wire_type(w, t) != DTYPE_F32;
}

static uint16_t *own_at(const struct wire *w, uint64_t k, size_t off)
{
    return (uint16_t *)w->own[k % WIRE_TASKS] + off;
}

const void *wire_leave(struct wire *w, const struct task *t, uint64_t k,
                       struct span piece, bool first)
{
    if (!narrow(w, t))
        return t->data + piece.off;
    uint16_t *own = own_at(w, k, piece.off);
    if (first)
        vector_cast_scaled(own, w->type, t->data + piece.off, 1 / w->divisor,
                           piece.n);
    return own;
}

void *wire_land(struct wire *w, const struct task *t, uint64_t k,
                struct span piece, bool partial)
{
    if (narrow(w, t))
        return own_at(w, k, piece.off);
    return partial ? w->landing : t->data + piece.off;
}

// A block at a time, so that what one pass wrote the next finds in cache.
static void landed_narrow(struct wire *w, float *data, uint16_t *own, size_t n,
                          bool partial, bool complete)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t len = n - i < BLOCK ? n - i : BLOCK;
        if (partial) {
            vector_cast_scaled(w->scaled, DTYPE_F32, data + i, 1 / w->divisor,
                               len);
            vector_add_into_wire(own + i, w->type, w->scaled, len);
        }
        if (complete)
            vector_cast(data + i, DTYPE_F32, own + i, w->type, len);
    }
}

void wire_landed(struct wire *w, const struct task *t, uint64_t k,
                 struct span piece, bool partial, bool complete)
{
    float *data = t->data + piece.off;
    if (narrow(w, t))
        landed_narrow(w, data, own_at(w, k, piece.off), piece.n, partial,
                      complete);
    else if (partial)
        vector_add(data, w->landing, DTYPE_F32, piece.n);
}
