// median.h - the middle of many measurements.

#ifndef BASE_MEDIAN_H
#define BASE_MEDIAN_H

// The median of v[n], n > 0: of an even number, the mean of the two in the
// middle. Leaves v in ascending order. No element is NaN.
double median(double *v, int n);

#endif
