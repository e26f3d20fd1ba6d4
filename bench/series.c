// series.c - the vector sizes of a bench's table.

#include "bench/series.h"

#include <stdbool.h>

int series_sizes(double min_bytes, double max_mb, double factor,
                 size_t counts[SERIES_SIZES])
{
    double most = max_mb * 1048576;
    int n = 0;
    for (double b = min_bytes; n < SERIES_SIZES; b *= factor) {
        bool last = b * factor > most * 1.001 && b < most * 0.999;
        counts[n++] = (size_t)(b / sizeof(float));
        if (last && n < SERIES_SIZES)
            counts[n++] = (size_t)(most / sizeof(float));
        if (b * factor > most * 1.001)
            break;
    }
    return n;
}
