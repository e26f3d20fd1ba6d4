// forecast.h - what a step will take on links that are known: the arithmetic.
//
//     exchange   T = law of the backend, its own fit of the link or "tcp"'s
//     apart      step = compute + T                             overlap=0
//     overlapped step = compute + exposed                       overlap=1
//                exposed = max(T - backward, T of the late buckets)
//
// Backward completes the embeddings, at the start of the vector, last of all:
// buckets that hold some of them always show. Where servers update, all of
// their answers, half of T, come after it as well; so do the parameters of
// workers that update alone, of which T is a step's share. The update counts as
// computing, wherever it happens.
//
// With shards (law_step()) gradients leave beside backward, of all micro-
// batches or of the last, and parameters come beside forward; with shard=3
// beside all of forward and, once more, beside backward:
//
//     exposed = norm + max(T of sums and of gathers again - backward, T of the
//               sums of late buckets) + max(T of gathers - forward, T of the
//               first block's gather)

#ifndef LOCKSTEP_FORECAST_H
#define LOCKSTEP_FORECAST_H

#include "sync/link.h"

struct forecast_job {
    struct law_case exchange;
    double params, bytes_each;    // gradients, and bytes of one on the wire
    const struct law_step *step;  // of a backend with shards
    double first_bucket, bucket;  // most gradients in the first and the others
    double embeddings;            // gradients that are complete last
    double compute_s, backward_s; // of a step; backward: its last micro-batch's
    double tokens;                // of a worker's step
};

struct forecast {
    double link_bytes; // on the busiest link, in the direction with more
    double exchange_s, apart_s, overlapped_s;
    double tokens_per_s, efficiency; // overlapped; 1: as if alone
    double least_s, most_s;          // overlapped, within the fit's error
};

// For a backend of several workers. 0, or -1 after fail() where the link is not
// known.
int forecast(const struct forecast_job *j, const struct backend *b,
             const struct links *links, struct forecast *out);

#endif
