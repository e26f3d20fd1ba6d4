// shares.h - how a lane's time between two samples divides into kinds.
//
// The total of a kind (span_totals) may fall from one look to the next, for two
// reasons. span_add() moves time that has passed to another kind. And a span
// that is just ending counts to its kind until the writer has noted the end.
//
// Let T be the totals, R the time that samples have reported so far, and d =
// max(0, T - R), kind by kind. After each sample sum(R) = sum(T), the lane's
// time. A sample over w seconds is
//
//     share = d / sum(d),  R += w share,  sum(d) >= w
//
// It is never negative and adds up to 1. Any time of d that it leaves out is
// still in T - R at the next sample.

#ifndef TELEMETRY_SHARES_H
#define TELEMETRY_SHARES_H

#include "telemetry/span.h"

struct shares {
    double reported_ns[SPAN_KINDS];
};

// The next sample begins now, with these totals of the lane.
void shares_begin(struct shares *s, const uint64_t totals[SPAN_KINDS]);

// Takes a sample: the shares of the time since the last sample, from the totals
// of now. All shares are 0 if no time has passed.
void shares_take(struct shares *s, const uint64_t totals[SPAN_KINDS],
                 double share[SPAN_KINDS]);

#endif
