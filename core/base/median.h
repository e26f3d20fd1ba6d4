// median.h - the median of measurements.

#pragma once

// The median of v[n], n > 0. If n is even, it is the mean of the two middle
// elements. Sorts v in ascending order. No element may be NaN.
double median(double *v, int n);
