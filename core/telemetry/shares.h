// shares.h - how a lane's time between two samples divides into kinds.
//
// Totals of a kind (span_totals) may fall from one look to the next: span_add()
// moves time that has passed to another kind, and a span that is just ending
// counts to its kind until the writer has noted the end. Let T be the totals,
// R what samples have reported so far, and d = max(0, T - R), kind by kind. The
// samples' sum is the lane's time, sum(R) = sum(T), so a sample over w seconds
//
//     share = d / sum(d),  R += w share,  sum(d) >= w
//
// is never negative, adds up to 1, and what it leaves out of d is still in
// T - R at the next sample.

#ifndef TELEMETRY_SHARES_H
#define TELEMETRY_SHARES_H

#include "telemetry/span.h"

struct shares {
    double reported_ns[SPAN_KINDS];
};

// The next sample begins where the lane's totals are these.
void shares_begin(struct shares *s, const uint64_t totals[SPAN_KINDS]);

// The time since the last sample, now that the totals are these. All 0 where no
// time has passed.
void shares_take(struct shares *s, const uint64_t totals[SPAN_KINDS],
                 double share[SPAN_KINDS]);

#endif
