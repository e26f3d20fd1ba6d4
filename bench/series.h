// series.h - the sizes of a table.

#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

#include <stddef.h>

enum { SERIES_SIZES = 64 };

// Element counts of fp32 vectors from min_bytes to max_mb MiB, each `factor`
// times the one before, the largest in any case. How many.
int series_sizes(double min_bytes, double max_mb, double factor,
                 size_t counts[SERIES_SIZES]);

#endif
