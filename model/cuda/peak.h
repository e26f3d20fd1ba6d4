// peak.h - what a GPU can do at most, in FLOP/s of matrix products.

#ifndef MODEL_CUDA_PEAK_H
#define MODEL_CUDA_PEAK_H

#include "model/model.h"

// By the maker's data sheet, dense; 0: device or format is not in the table.
double cuda_sheet(const char *device, enum dtype format, bool tf32);

// n normal deviates of that format at `to`, on the device. 0, or -1 after
// fail().
int cuda_draw(struct device *d, enum dtype format, void *to, size_t n);

// As model_peak() promises.
int cuda_peak(const struct model_job *job, struct model_peak *out);

#endif
