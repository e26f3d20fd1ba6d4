// wire.h - what is done to a piece of a vector before it leaves and after it
// came in, by number format.
//
// fp32: pieces leave from the vector itself; what comes in is added to it.
// fp16, bf16: a worker's share is divided by a power of two that is at least
// the number of workers, so that the sum cannot overflow where the mean does
// not, and rounded; every hop adds in fp32 and rounds once; the complete sum
// goes round as it was rounded, so that every worker, the owner too, ends up
// with the same bits. A power of two loses nothing that world itself would not.

#ifndef HOROVOD_RING_WIRE_H
#define HOROVOD_RING_WIRE_H

#include "horovod_ring/plan.h"

#include "base/half.h"

enum { WIRE_TASKS = 2 }; // may be on their way at once

struct wire {
    enum dtype type;
    float divisor;           // the sum is divided by it: 1 for fp32
    void *own[WIRE_TASKS];   // 16 bits: the vector as it travels
    float *landing, *scaled; // fp32 that came in; a block of our share
};

// For vectors of at most `most` elements in pieces of at most `piece`.
int wire_open(struct wire *w, enum dtype type, int world, size_t most,
              size_t piece);
void wire_close(struct wire *w);

enum dtype wire_type(const struct wire *w, const struct task *t);

// Where elements [off, off+n) of task number k leave from; converts them if
// they are this worker's own share (`first`).
const void *wire_leave(struct wire *w, const struct task *t, uint64_t k,
                       struct span piece, bool first);

// Where a piece comes in, and what is done with it then: add our share
// (`partial`), and store it in the vector if the sum is complete.
void *wire_land(struct wire *w, const struct task *t, uint64_t k,
                struct span piece, bool partial);
void wire_landed(struct wire *w, const struct task *t, uint64_t k,
                 struct span piece, bool partial, bool complete);

#endif
