// layer_cuda.h - what the program layer_perf does with device=cuda.

#ifndef BENCH_LAYER_CUDA_H
#define BENCH_LAYER_CUDA_H

// Measures what the arguments ask for. Returns the exit status: 77 without a
// GPU.
int layer_cuda(int nwords, char **words);

#endif
