// peer.h - PyTorch beside ours.

#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "bench/subject.h"

// Run the same step in PyTorch and print its line below ours; says why where
// it cannot.
void peer_print(const struct subject_case *c);

// The same on a GPU: eager and compiled, in bf16.
void peer_print_cuda(const struct subject_case *c, int steps);

#endif
