// store.h - a server's shard: parameters and the optimiser's state, by row.
//
// A row of parameters is a buffer with a reference count, sent without copying.
// If a row changes while its buffer is still being sent, a new buffer takes its
// place.

#pragma once

#include "ps_wire/buffer.h"
#include "ps_wire/job.h"
#include "ps_wire/shard.h"
#include "ps_wire/wire.h"

struct thread_pool;

struct row {
    struct slice at;
    struct buffer *params;
    uint64_t version; // number of updates of this row
};

struct store {
    const struct ps_job *job;
    struct shard shard;
    struct thread_pool *threads;
    struct buffers *pool; // of one fp32 slice each
    struct buffers *half; // of one 16-bit slice each, for sums on such a wire
    int nrows;
    struct row *rows;
    float *slots[OPTIM_MAX_SLOTS]; // the shard's; NULL before the first use
    uint64_t sets[PS_WHATS];       // whole vectors set so far
    int next_set[PS_WHATS];        // the row that the next SET must have
};

// Opens the shard that *job (borrowed) describes. Returns 0, or -1 after
// fail().
int store_open(struct store **s, const struct ps_job *job,
               struct thread_pool *threads);
void store_close(struct store **s);

// Copies data (fp32) to row `row` of vector `what`. Rows must come in order;
// the last one increments sets[what]. Row 0 begins anew: worker 0 may have died
// while it set a vector. Returns 0, or -1 after fail().
// `elsewhere` is where the row is if the store does not have it; else NULL.
int store_set(struct store *s, enum ps_what what, int row, const void *data,
              float *elsewhere);

// Returns row `row` of vector `what` in a buffer, with a reference that the
// caller gives back. NULL after fail(). `elsewhere`: as above.
struct buffer *store_get(struct store *s, enum ps_what what, int row,
                         const float *elsewhere);

// Updates a row with the gradient scale * grads; `step` counts from 1. Returns
// 0, or -1 after fail().
int store_update(struct store *s, int row, const float *grads, int step,
                 float lr, float scale);
