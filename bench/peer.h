// peer.h - times PyTorch at the same work, for comparison with ours.

#pragma once

#include "bench/workload.h"

// Runs a script of tests/oracle with these words, and prints its lines as
// comments. `python` is the interpreter, without a quote; NULL or "": the one
// that CMake found. If PyTorch cannot run, a line says why.
void peer_run(const char *python, const char *script, const char *words);

// Runs a script that makes the same step, eager and compiled, and prints a line
// for each. `more`: words behind those of the case.
void peer_step(const struct workload_case *c, const char *python,
               const char *script, const char *more);
