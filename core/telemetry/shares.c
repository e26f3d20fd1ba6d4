// shares.c - computes shares that are never negative and lose no time.

#include "telemetry/shares.h"

void shares_begin(struct shares *s, const uint64_t totals[SPAN_KINDS])
{
    for (int k = 0; k < SPAN_KINDS; k++)
        s->reported_ns[k] = (double)totals[k];
}

void shares_take(struct shares *s, const uint64_t totals[SPAN_KINDS],
                 double share[SPAN_KINDS])
{
    double passed = 0, due = 0;
    for (int k = 0; k < SPAN_KINDS; k++) {
        double d = (double)totals[k] - s->reported_ns[k];
        passed += d;
        share[k] = d > 0 ? d : 0;
        due += share[k];
    }
    for (int k = 0; k < SPAN_KINDS; k++) {
        share[k] = passed > 0 ? share[k] / due : 0;
        s->reported_ns[k] += share[k] * passed;
    }
}
