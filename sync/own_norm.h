// own_norm.h - the norm of this worker's own gradient, before the sum.
//
// With the norm of the mean gradient it gives the gradient noise scale
// (McCandlish and others, "An Empirical Model of Large-Batch Training", 2018,
// appendix A.1). The report computes it from all workers' norms.

#pragma once

#include "sync/sync.h"

// Returns 0, or -1 after fail() if own_norm=1 is asked for where a worker does
// not have its whole gradient in its own memory before the sum.
int own_norm_check(const struct sync *s);

// own_norm=1: adds the squares of bucket b, which backward has just filled.
void own_norm_add(struct sync *s, int b);

// The norm of the gradient whose buckets were added, after in->grad_scale, and
// begins the next. 0 without own_norm=1.
double own_norm_take(struct sync *s, const struct sync_in *in);
