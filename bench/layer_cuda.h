// layer_cuda.h - what the program layer_perf does with device=cuda.

#pragma once

// Measures what the arguments ask for. Returns the exit status: 77 without a
// GPU.
int layer_cuda(int nwords, char **words);
