// gpu_ops.h - times each operation of a step on a GPU, and its lower bound.

#pragma once

#include "bench/workload.h"

// Prints a line for each operation of a step of this case: its median time and
// its lower bound. The bound is the larger of two times: its FLOP divided by
// `peak` (FLOP/s), and the bytes that it must move divided by the memory's
// rate. Returns 0, or -1 after fail().
int gpu_ops(struct device *d, const struct workload_case *c, double peak);
