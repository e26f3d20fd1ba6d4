// bucket.h - cuts the flat gradient into buckets, last layer first.

#pragma once

#include "sync/sync.h"

// Fill out[] with ranges that tile [0, n) from its end. The first range has at
// most `first` elements, so that communication begins early; each other range
// has at most `size`. Returns the number of ranges, or -1 after fail() if more
// than `max` are needed.
int bucket_cut(struct bucket *out, int max, size_t n, size_t first,
               size_t size);

// The usual `size`, in elements: a fortieth of n, so that little is left to
// send when backward ends. It is at least 1 MiB, so that a bucket is worth its
// latency, and at most 25 MiB.
size_t bucket_usual(size_t n);
