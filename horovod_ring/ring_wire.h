// ring_wire.h - what the ring does to a piece of a vector before it is sent and
// after it came in, by number format.
//
// If the wire is as wide as the vector, pieces are sent from the vector itself,
// and a piece that comes in is added to the vector, or stored in it. If fp32
// numbers travel in a 16-bit wire, a worker's share is multiplied by the
// vector's scale and rounded. Every hop adds in fp32 and rounds once. The
// complete sum travels round in its rounded form, so that every worker, also
// the owner of the chunk, has the same bits.

#pragma once

#include "horovod_ring/plan.h"

enum { WIRE_OPS = 2 }; // verbs that may be under way at once

struct wire {
    uint16_t *half[WIRE_OPS]; // 16-bit wire: the vector in the wire's format
    void *landing;            // receive buffer of a piece that is added
    float *scaled;            // a block of our share, multiplied by the scale
};

// Allocates for 16-bit vectors of at most `largest` elements (0: none), in
// pieces of at most `piece` bytes. Returns 0, or -1 after fail(); wire_close()
// follows in both cases.
int wire_open(struct wire *w, size_t largest, size_t piece);
void wire_close(struct wire *w);

// Returns the address from which a piece of verb number k is sent. `own`: the
// piece is this worker's share and is cast first. `result`: the piece is the
// result, so the vector is rounded too.
const void *wire_leave(struct wire *w, const struct group_vector *v, uint64_t k,
                       struct group_chunk piece, bool own, bool result);

// wire_land returns where a piece is received. wire_landed works on it after
// that: it adds our share (`adds`), and stores the piece in the vector if it is
// the result (`completes`).
void *wire_land(struct wire *w, const struct group_vector *v, uint64_t k,
                struct group_chunk piece, bool adds);
void wire_landed(struct wire *w, const struct group_vector *v, uint64_t k,
                 struct group_chunk piece, bool adds, bool completes);
