// peer.h - PyTorch beside ours.

#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "bench/workload.h"

// Run the same step in PyTorch and print its lines below ours, which took `ms`:
// eager and compiled. `python` is the interpreter; NULL: the one that CMake
// found. Where it cannot, a line says why.
void peer_print(const struct workload_case *c, const char *python, double ms);

// The same on a GPU: eager and compiled, in bf16.
void peer_print_cuda(const struct workload_case *c, int steps);

#endif
