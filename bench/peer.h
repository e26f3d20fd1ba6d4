// peer.h - PyTorch beside ours.

#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "bench/subject.h"

// Run the same step in PyTorch and print its line below ours; says why where
// it cannot.
void peer_print(const struct subject_case *c);

#endif
