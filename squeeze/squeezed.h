// squeezed.h - the strategy of replicas that exchange compressed gradients.

#ifndef SQUEEZE_SQUEEZED_H
#define SQUEEZE_SQUEEZED_H

#include "sync/sync.h"

// Takes the place of sync_replicas if squeeze= is given.
extern const struct sync_ops sync_squeezed;

// Cuts the gradients into the ranges that are compressed one by one, as scope=
// says: the job's buckets; the matrices and the runs of vectors between two of
// them; or all in one. Last range first. The caller frees *units with
// mem_free(). Returns how many there are, or -1 after fail().
int squeezed_units(const struct sync_job *job, struct bucket **units);

// The law: bytes that each worker sends, and receives, in a step whose n units
// are compressed.
uint64_t squeezed_bytes(const struct sync_settings *s, int world,
                        const struct bucket *units, int n);

#endif
