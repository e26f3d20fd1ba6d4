// cuda.h - the table of the CUDA device, and its kernels as plain functions.
//
// Only files that are built with CUDA call these.

#pragma once

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct device_ops device_cuda;

// Stops every rank with file and line if a CUDA call fails and the program
// cannot go on: a lost device, an illegal address.
#define CU(call) cuda_check((int)(call), __FILE__, __LINE__, #call)
void cuda_check(int status, const char *file, int line, const char *call);

// The device's compute capability, as major * 10 + minor.
int cuda_capability(const struct device *d);

// How many multiprocessors it has.
int cuda_multiprocessors(const struct device *d);

// cuda_name() is the manufacturer's name of the device. cuda_bandwidth() is the
// memory's peak rate by the clock and bus width that the driver reports, in
// bytes per second; 0: unknown.
const char *cuda_name(const struct device *d);
double cuda_bandwidth(const struct device *d);

// Of the table, in cuda_kernels.cu.
void cuda_cast(struct device *d, enum device_queue q, void *dst, enum dtype to,
               const void *src, enum dtype from, float scale, size_t n);
void cuda_add(struct device *d, enum device_queue q, void *dst, const void *src,
              enum dtype from, size_t n);
void cuda_add_into_wire(struct device *d, enum device_queue q, void *wire,
                        enum dtype type, const float *acc, size_t n);

#ifdef __cplusplus
}
#endif
