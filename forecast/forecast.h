// forecast.h - predicts the time of a step from the figures of the links.
//
//     exchange   T = the backend's law, with the link fitted to this backend,
//                    or else the link fitted to "tcp" (sync/link.h)
//     apart      step = compute + T                             overlap=0
//     overlapped step = compute + exposed                       overlap=1
//                exposed = max(T - backward, T of the late buckets)
//
// The late buckets contain gradients of the embeddings, at the start of the
// vector. Backward completes these last, so their exchange is always exposed.
// If servers update, all of their replies, half of T, also come after backward.
// If workers train apart between exchanges, T is a step's share of the
// exchange, and all of it comes after backward. The update counts as computing,
// wherever it is done.
//
// With shards (law_step()), gradients are summed while backward runs, for each
// micro-batch or for the last one, and parameters are gathered while forward
// runs. With shard=3 they are gathered again while backward runs:
//
//     exposed = norm
//             + max(T of sums and second gathers - backward,
//                   T of the sums of the late buckets)
//             + max(T of gathers - forward, T of the first block's gather)
//
// norm is the time of the all-reduce for the gradient norm.

#pragma once

#include "sync/link.h"

struct forecast_job {
    struct law_case exchange;
    int follow; // with squeeze=: exchanges of a step that follow each other,
                // each with its own latency (squeezed_law()); 0: one
    double params, bytes_each;    // number; bytes of one gradient on the wire
    const struct law_step *step;  // for a backend with shards; borrowed
    double bucket;                // elements
    double embeddings;            // gradients that are complete last
    double compute_s, backward_s; // of a step; backward: of one micro-batch
    double tokens;                // of a worker in a step
};

struct forecast {
    double link_bytes; // on the busiest link, in the direction with more
    double exchange_s, apart_s, overlapped_s;
    double tokens_per_s, efficiency; // with overlap; 1: no communication
    double least_s, most_s;          // overlapped_s within the fit's error
};

// Predicts a step of a backend of several workers. 0, or -1 after fail() if
// `links` has no figures for it.
int forecast(const struct forecast_job *j, const struct backend *b,
             const struct links *links, struct forecast *out);
