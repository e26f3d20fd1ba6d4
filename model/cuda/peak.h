// peak.h - the highest rate of a GPU's matrix products, in FLOP/s.

#pragma once

#include "model/model.h"

// The dense peak by the vendor's data sheet; 0 if the device or the format is
// not in the table. `device` is the name that the driver gives it.
double cuda_sheet(const char *device, enum dtype format, bool tf32);

// Fills `to`, on the device, with n normally distributed numbers of the format.
// Returns 0, or -1 after fail().
int cuda_draw(struct device *d, enum dtype format, void *to, size_t n);

// model_peak() on a GPU.
int cuda_peak(const struct model_job *job, struct model_peak *out);
