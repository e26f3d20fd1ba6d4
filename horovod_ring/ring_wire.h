// ring_wire.h - what is done to a piece of a vector before it leaves and after
// it came in, by number format.
//
// Wire as wide as the vector: pieces leave from the vector itself; what comes
// in is added to it, or lands in it. fp32 in a 16-bit wire: a worker's share is
// multiplied by the vector's scale and rounded; every hop adds in fp32 and
// rounds once; the complete sum goes round as it was rounded, so that every
// worker, the owner too, ends up with the same bits.

#ifndef HOROVOD_RING_RING_WIRE_H
#define HOROVOD_RING_RING_WIRE_H

#include "horovod_ring/plan.h"

enum { WIRE_OPS = 2 }; // may be on their way at once

struct wire {
    uint16_t *half[WIRE_OPS]; // 16-bit wire: the vector as it travels
    void *landing;            // a piece that came in, to be added
    float *scaled;            // a block of our share
};

// For 16-bit vectors of at most `largest` elements (0: none), in pieces of at
// most `piece` bytes. 0, or -1 after fail(); wire_close() follows either way.
int wire_open(struct wire *w, size_t largest, size_t piece);
void wire_close(struct wire *w);

// Where elements of verb number k leave from: `own` converts them from this
// worker's share; `result`: they are the result, so the vector is rounded too.
const void *wire_leave(struct wire *w, const struct group_vector *v, uint64_t k,
                       struct group_chunk piece, bool own, bool result);

// Where a piece comes in, and what is done with it then: add our share
// (`adds`), and store it in the vector if it is the result (`completes`).
void *wire_land(struct wire *w, const struct group_vector *v, uint64_t k,
                struct group_chunk piece, bool adds);
void wire_landed(struct wire *w, const struct group_vector *v, uint64_t k,
                 struct group_chunk piece, bool adds, bool completes);

#endif
