// series.h - the vector sizes of a bench's table.

#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

#include <stddef.h>

enum { SERIES_SIZES = 64 };

// Fills counts with the numbers of elements of fp32 vectors from min_bytes
// bytes to max_mb MiB. Each is `factor` times the one before, except the last,
// which has max_mb MiB. Returns how many there are, at most SERIES_SIZES.
int series_sizes(double min_bytes, double max_mb, double factor,
                 size_t counts[SERIES_SIZES]);

#endif
