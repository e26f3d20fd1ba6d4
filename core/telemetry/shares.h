// shares.h - divides a lane's time between two samples among the kinds of
// spans.
//
// The total of a kind (span_totals) may fall from one call to the next, for two
// reasons. span_add() moves time that has passed to another kind. And a span
// that is just ending counts for its kind until the writer has recorded the
// end.
//
// Let T be the totals, R the time that samples have reported so far, and d =
// max(0, T - R), for each kind. After each sample sum(R) = sum(T), the lane's
// time. A sample over w seconds is
//
//     share = d / sum(d),  R += w share,  sum(d) >= w
//
// Shares are never negative, and their sum is 1. Time of d that a sample leaves
// out is still in T - R at the next sample.

#pragma once

#include "telemetry/span.h"

struct shares {
    double reported_ns[SPAN_KINDS];
};

// Begins the next sample now, with these totals of the lane.
void shares_begin(struct shares *s, const uint64_t totals[SPAN_KINDS]);

// Takes a sample: computes the shares of the time since the last sample, from
// the present totals. All shares are 0 if no time has passed.
void shares_take(struct shares *s, const uint64_t totals[SPAN_KINDS],
                 double share[SPAN_KINDS]);
