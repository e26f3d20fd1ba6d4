// gpu_ops.h - the operations of a step on a GPU, each beside its lower bound.

#ifndef BENCH_GPU_OPS_H
#define BENCH_GPU_OPS_H

#include "bench/workload.h"

// Print a line for each operation of a step of this case: its median time, and
// the larger of its arithmetic over `peak` (FLOP/s) and of the bytes that it
// must move over the memory's rate. 0, or -1 after fail().
int gpu_ops(struct device *d, const struct workload_case *c, double peak);

#endif
