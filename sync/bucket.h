// bucket.h - cuts the flat gradient into buckets, last layer first.

#pragma once

#include "sync/sync.h"

// Fill out[] with ranges that tile [0, n) from its end. The first range has at
// most `first` elements, so that communication begins early; each other range
// has at most `size`. Returns the number of ranges, or -1 after fail() if more
// than `max` are needed.
int bucket_cut(struct bucket *out, int max, size_t n, size_t first,
               size_t size);

// The usual `first`: n, if one bucket of `size` holds all; else at most 1 MiB.
size_t bucket_first(size_t n, size_t size);

// The usual `size`, in elements: a fortieth of n, so that little is left to
// send when backward ends, but at most 25 MiB. A bucket must be worth its
// latencies. So the size is never below 1 MiB, nor below a quarter MiB for each
// of the `hops` workers that a sum passes one after the other: the workers of a
// ring, else 0.
size_t bucket_usual(size_t n, int hops);

// Writes aligned copies of n buckets to *out: the borders between them move up
// to multiples of `grain` elements (at least 1), and those that are empty after
// that are left out. An aligned bucket is complete when the last of the buckets
// that it was made of is. The caller frees *out with mem_free(). Returns how
// many there are, or -1 after fail().
int bucket_align(struct bucket **out, const struct bucket *buckets, int n,
                 size_t grain);
