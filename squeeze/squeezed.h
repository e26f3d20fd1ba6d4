// squeezed.h - the strategy of replicas that exchange compressed gradients.

#pragma once

#include "group/group.h"
#include "sync/law.h"
#include "sync/sync.h"

// Takes the place of sync_replicas if squeeze= is given.
extern const struct sync_ops sync_squeezed;

// A range of the gradients that is compressed as one.
struct squeeze_unit {
    size_t off, n;
    size_t rows; // of the matrix that it is; 0: it is none
};

// Cuts the gradients into units, as scope= says: the job's buckets; the
// matrices and the runs of vectors between two of them, as for squeeze=power;
// or all in one. Last unit first. The caller frees *units with mem_free().
// Returns how many there are, or -1 after fail().
int squeezed_units(const struct sync_job *job, struct squeeze_unit **units);

// The law: *out becomes what worker `rank` sends and receives in a step whose n
// units are compressed, in bytes, by verb.
void squeezed_bytes(const struct sync_settings *s, int world, int rank,
                    const struct squeeze_unit *units, int n,
                    struct group_stats *out);

// out[v]: bytes that a worker sends in such a step by verb v, the mean of all
// workers. Returns the sum over all verbs.
double squeezed_mean(const struct sync_settings *s, int world,
                     const struct squeeze_unit *units, int n,
                     double out[GROUP_VERBS]);

// The same as a law of times. Messages are gathered around a ring. A compressor
// that sends twice first exchanges parts between all pairs of workers at once;
// if it sums, it goes around the ring twice for each sum. Returns how many
// exchanges follow each other: one, as if there were one bucket, or where units
// are the model's tensors each of them. Their latencies add up.
int squeezed_law(const struct sync_settings *s, int world,
                 const struct squeeze_unit *units, int n, struct law *out);

// Bytes of the memory that messages need, with one vector as long as the
// largest unit, and what a worker keeps apart from the residual of its
// gradients.
size_t squeezed_memory(const struct sync_settings *s, int world,
                       const struct squeeze_unit *units, int n);
