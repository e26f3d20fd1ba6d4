// peer.h - times PyTorch at the same work, for comparison with ours.

#pragma once

#include "bench/workload.h"

// Runs a script of tests/oracle with these words, and prints its lines as
// comments. `python` is the interpreter, without a quote; NULL or "": the one
// that CMake found. If PyTorch cannot run, a line says why.
void peer_run(const char *python, const char *script, const char *words);

// Runs the same step in PyTorch, eager and compiled, and prints a line for
// each. Our step took `ms` milliseconds. `python`: as above.
void peer_print(const struct workload_case *c, const char *python, double ms);

// The same on a GPU in bf16, eager and compiled, for `steps` steps.
void peer_print_cuda(const struct workload_case *c, int steps);
